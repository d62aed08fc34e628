#include "autograd/ops/shape.hpp"
#include "nn/heads/task_head.hpp"
#include "nn/layers.hpp"

namespace heed {

namespace {

/// Which of K options is right: softmax over k of v·h_k, h_k the summary of the sequence with option k, inputs [B, K, T] (Radford et al.
/// 2018, section 3.3; Devlin et al. 2019, section 4.4).
class MultipleChoice : public TaskHead {
 public:
  MultipleChoice(HeadParts const& parts, TaskHeadSettings const& settings)
      : TaskHead(parts, settings, "choice", {"label", "label"}), vector_(parts.scope.at("choice"), width(), 1, false) {
    check_options(parts.data);
  }

 private:
  LinearHead logits(Streams const& streams, Batch const& batch, Pass const& pass) const override {
    Tensor const scores = vector_(summary(streams, pass));  // [B·K, 1]
    return {reshape(scores, {batch.rows(), -1})};
  }

  Linear vector_;
};

struct ChoiceSettings : TaskHeadSettings {
  std::unique_ptr<OutputHead> make(HeadParts const& parts) const override { return std::make_unique<MultipleChoice>(parts, *this); }
};

Declared<HeadKind> const choice_head{{"choice", "which of several options is right (Radford et al. 2018; Devlin et al. 2019)",
                                      [] { return std::make_shared<ChoiceSettings>(); }}};

}  // namespace

}  // namespace heed
