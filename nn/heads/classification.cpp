#include "autograd/error.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/ops/shape.hpp"
#include "nn/heads/task_head.hpp"
#include "nn/layers.hpp"

namespace heed {

namespace {

/// The class of an example: softmax(W h + b) of its summary h (Radford et al. 2018, eq. 3; Devlin et al. 2019, section 4.1). Of a pair that
/// is shown in both orders, inputs [B, 2, T], h is the sum of both summaries.
class Classification : public TaskHead {
 public:
  Classification(HeadParts const& parts, TaskHeadSettings const& settings)
      : TaskHead(parts, settings, "classification", {.name = "label", .targets = "label", .of_classes = parts.data["label"].weights}),
        linear_(parts.scope.at("classification"), width(), parts.data["label"].classes, true) {
    if (has_options(parts.data)) throw Error("model.head: options of a multiple choice have no classes; use head: choice");
  }

 private:
  LinearHead logits(Streams const& streams, Batch const& batch, Pass const& pass) const override {
    Tensor const h = summary(streams, pass);
    Index const rows = batch.rows();
    return {h.size(0) == rows ? h : sum(reshape(h, {rows, -1, h.size(1)}), {1}), linear_.weight, linear_.bias};
  }

  Linear linear_;
};

struct ClassificationSettings : TaskHeadSettings {
  std::unique_ptr<OutputHead> make(HeadParts const& parts) const override { return std::make_unique<Classification>(parts, *this); }
};

Declared<HeadKind> const classification_head{{"classification",
                                              "the class of a text or of a pair of texts (Radford et al. 2018; Devlin et al. 2019)",
                                              [] { return std::make_shared<ClassificationSettings>(); }}};

}  // namespace

}  // namespace heed
