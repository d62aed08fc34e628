#include <algorithm>

#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/product.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/ops/shape.hpp"
#include "nn/estimator.hpp"
#include "nn/heads/head.hpp"

namespace heed {

Tensor option_scores(LinearHead const& words, Tensor const& of_rows, bool mean) {
  Tensor const targets = sequences_of(of_rows);
  std::vector<Tensor> scores;
  for (Index sequence = 0; sequence < words.x.size(0); ++sequence) {
    Tensor const of_one = targets.rows(sequence, 1);
    Tensor const logits = linear(slice(words.x, 0, sequence, sequence + 1), words.weight, words.bias);
    double const count = mean ? std::max(counted(of_one), 1.0) : 1;
    scores.push_back(scale(sum(token_losses(logits, of_one)), -1 / count));
  }
  return stack(scores, 0);
}

namespace {

struct LikelihoodSettings : HeadSettings {
  std::string score = "mean";

  std::vector<Field> fields() override {
    return {field(&score, "score", "score of an option: mean or sum of its tokens' log-probabilities").one_of({"mean", "sum"})};
  }
  std::vector<InputPart> reads(HeadViews const&) const override { return {{"inputs", "continued"}, {"targets", "continued"}, {"label"}}; }
};

/// Which of K options is right, without training: the score of an option is the log-probability of its tokens behind the text, their mean
/// or sum (Radford et al. 2018, section 5, "zero-shot behaviors"). inputs, targets [B, K, T]: −1 where a token is not the option's.
class Likelihood : public OutputHead {
 public:
  Likelihood(HeadParts const& parts, LikelihoodSettings const& settings) : OutputHead(parts), mean_(settings.score == "mean") {
    check_options(parts.data);
  }

  std::vector<Term> terms() const override { return {{"label", "label"}}; }
  std::vector<Prediction> predictions(Streams const& streams, Batch const& batch, Pass const&) const override {
    Tensor const scores = option_scores(words(streams.last()), batch["targets"], mean_);
    return {{terms()[0], {reshape(scores, {batch.rows(), -1})}}};
  }

 private:
  bool mean_;
};

Declared<HeadKind> const likelihood_head{head_of<Likelihood, LikelihoodSettings>(
    "likelihood", "the option with the highest likelihood under a language model, zero-shot (Radford et al. 2018)", SeesText::past)};

}  // namespace

}  // namespace heed
