#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/loss.hpp"
#include "autograd/ops/shape.hpp"
#include "nn/heads/task_head.hpp"
#include "nn/layers.hpp"

namespace heed {

namespace {

/// Where an answer begins and ends in a passage: P_i = exp(S·T_i)/Σ_j exp(S·T_j) and the same with E for its end, logits [B, 2, T] (Devlin
/// et al. 2019, section 4.2). Positions that are not the passage's (part "passage" is 0) have no probability; the position of the summary
/// token stands for "no answer" (section 4.3).
class Span : public TaskHead {
 public:
  Span(HeadParts const& parts, TaskHeadSettings const& settings)
      : TaskHead(parts, settings, "span", {"span", "span"}), ends_(parts.scope.at("span"), width(), 2, true) {}

 private:
  LinearHead logits(Streams const& streams, Batch const& batch, Pass const& pass) const override {
    Tensor const scores = permute(ends_(per_token(streams, pass)), {0, 2, 1});  // [B, 2, T]
    Tensor const& passage = batch["passage"];
    std::vector<double> outside;
    for (Index const part : passage.data<std::int64_t>()) outside.push_back(part == 0 ? no_choice : 0);
    return {scores + Tensor::of(outside, {passage.size(0), 1, passage.size(1)}, scores.dtype())};
  }

  Linear ends_;
};

struct SpanSettings : TaskHeadSettings {
  std::vector<InputPart> reads(HeadViews const& views) const override {
    return examples(views, {{"passage", views.examples}, {"span", views.examples}});
  }
  std::unique_ptr<OutputHead> make(HeadParts const& parts) const override { return std::make_unique<Span>(parts, *this); }
};

Declared<HeadKind> const span_head{
    {"span", "where an answer begins and ends in a passage (Devlin et al. 2019)", [] { return std::make_shared<SpanSettings>(); }}};

}  // namespace

}  // namespace heed
