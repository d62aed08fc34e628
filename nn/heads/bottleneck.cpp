#include <algorithm>

#include "autograd/ops/shape.hpp"
#include "nn/heads/head.hpp"
#include "nn/layers.hpp"
#include "nn/position.hpp"

namespace heed {

namespace {

/// Every target from the state h of one position, the first that has a target (Poli et al. 2024, MAD, "compression"): the target k
/// positions later is softmax(W f(h + PE[k])), PE as in sinusoids(), f two times GELU(linear(RMS norm)), then an RMS norm. Nothing else of
/// the sequence reaches the predictions, which know each other as little. Without targets h is the last token's.
class Bottleneck : public OutputHead {
 public:
  Bottleneck(HeadParts const& parts, HeadSettings const&)
      : OutputHead(parts),
        first_(parts.scope.at("bottleneck.0"), parts.width),
        second_(parts.scope.at("bottleneck.1"), parts.width),
        norm_(parts.scope.at("bottleneck.norm"), parts.width, "rms") {}

  std::vector<Term> terms() const override { return {Term()}; }

  std::vector<Prediction> predictions(Streams const& streams, Batch const& batch, Pass const& pass) const override {
    Tensor const& x = streams.last();
    Index const rows = x.size(0), tokens = x.size(1), width = x.size(2);
    std::vector<Index> lengths, steps;
    for (Index row = 0; row < rows; ++row) {
      Index const asked = batch.has("targets") ? first_target(batch["targets"], row) : tokens - 1;
      lengths.push_back(asked + 1);
      for (Index t = 0; t < tokens; ++t) steps.push_back(std::max<Index>(t - asked, 0));
    }
    Tensor const state = reshape(at_summary(x, Tensor::of(lengths, {rows}), false), {rows, 1, width});
    Tensor const places = embedding(sinusoids(0, tokens, width, x.dtype()), Tensor::of(steps, {rows, tokens}));
    set_reach(pass, 0, HardChoices::Reach::later);  // through the state a choice of the last layer affects later positions, too
    return {{Term(), words(norm_(second_(first_(state + places))))}};
  }

 private:
  struct DecoderLayer {
    DecoderLayer(Scope const& scope, Index width) : norm(scope.at("norm"), width, "rms"), linear(scope, width, width, true) {}
    Tensor operator()(Tensor const& x) const { return gelu_exact(linear(norm(x))); }

    Norm norm;
    Linear linear;
  };

  /// The last position if there is none.
  static Index first_target(Tensor const& targets, Index row) {
    auto const tokens = static_cast<std::size_t>(targets.size(1));
    auto const own = targets.data<std::int64_t>().subspan(static_cast<std::size_t>(row) * tokens, tokens);
    return std::min(std::ranges::find_if(own, [](auto target) { return target >= 0; }) - own.begin(), targets.size(1) - 1);
  }

  DecoderLayer first_, second_;
  Norm norm_;
};

struct BottleneckSettings : HeadSettings {
  std::vector<InputPart> reads(HeadViews const&) const override { return {{"inputs"}, {"targets"}}; }
};

Declared<HeadKind> const bottleneck_head{head_of<Bottleneck, BottleneckSettings>(
    "bottleneck", "tasks: every target from the state of the first position that has one (Poli et al. 2024)", SeesText::past)};

}  // namespace

}  // namespace heed
