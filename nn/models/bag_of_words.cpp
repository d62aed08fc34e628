#include "autograd/ops/shape.hpp"
#include "nn/heads/head.hpp"
#include "nn/layers.hpp"
#include "nn/model.hpp"

namespace heed {

namespace {

/// `model: {kind: bag_of_words, …}`.
struct BagOfWordsSettings : Settings {
  Index width = 64;
  Index context = 256;

  std::vector<Field> fields() override {
    return {field(&width, "width", "width of the token embeddings").in(1, 65536),
            field(&context, "context", "longest sequence in tokens").in(1, 1 << 20)};
  }
};

/// A linear function of the mean of a sequence's token embeddings, whatever their order: the classifier of fastText (Joulin et al. 2017),
/// of words alone. A token's embedding includes its segment's. Of a multiple choice, inputs [B, K, T], a sequence has one score.
class BagOfWords : public Model {
 public:
  BagOfWords(Parameters& parameters, BagOfWordsSettings const& s, Signature const& data)
      : settings_(s),
        of_classes_(data["label"].weights),
        choice_(has_options(data)),
        tokens_(Scope(parameters).at("token_embedding"), data["inputs"].classes, s.width),
        segments_(Scope(parameters).at("segment_embedding"), data["segments"].classes, s.width),
        output_(Scope(parameters).at("heads.output"), s.width, choice_ ? 1 : data["label"].classes, !choice_) {}

  std::vector<Term> terms() const override { return {{.name = "label", .targets = "label", .of_classes = of_classes_}}; }
  Outcome run(Batch const& batch, Pass const&) const override {
    Tensor const x = tokens_(sequences_of(batch["inputs"])) + segments_(sequences_of(batch["segments"]));  // [B, T, d], or [B·K, T, d]
    Tensor const mean = mean_of_tokens(x, lengths_of_sequences(batch));
    if (choice_) return {{{terms()[0], {reshape(output_(mean), {batch.rows(), -1})}}}};
    return {{{terms()[0], {mean, output_.weight, output_.bias}}}};
  }
  Index context() const override { return settings_.context; }
  Index vocabulary() const override { return tokens_.weight.size(0); }
  Index width() const override { return settings_.width; }
  double flops_per_token() const override { return 2 * static_cast<double>(settings_.width); }

 private:
  BagOfWordsSettings settings_;
  std::vector<double> of_classes_;
  bool choice_;  ///< of options; else classes
  Embedding tokens_, segments_;
  Linear output_;
};

Declared<ModelKind> const bag_of_words_model{model_of<BagOfWords, BagOfWordsSettings>(
    "bag_of_words", "a linear classifier of the mean of a text's token embeddings: a baseline (Joulin et al. 2017)",
    {{"label"}, {"inputs", "segmented"}, {"segments", "segmented"}})};

}  // namespace

}  // namespace heed
