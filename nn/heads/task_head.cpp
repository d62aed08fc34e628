#include "nn/heads/task_head.hpp"

#include "autograd/error.hpp"
#include "autograd/ops/shape.hpp"

namespace heed {

std::vector<Field> TaskHeadSettings::fields() {
  return extended(features.fields(),
                  {field(&auxiliary, "auxiliary", "weight of an auxiliary language-model loss on the examples (Radford et al. 2018: 0.5)")
                       .in(0, 1000)});
}

std::vector<InputPart> TaskHeadSettings::examples(HeadViews const& views, std::vector<InputPart> const& labels) const {
  std::vector<InputPart> parts{{"inputs", views.examples}};
  if (views.segments) parts.push_back({"segments", views.examples});
  if (predicts_tokens()) parts.push_back({"targets", views.examples});
  parts.insert(parts.end(), labels.begin(), labels.end());
  return parts;
}

TaskHead::TaskHead(HeadParts const& parts, TaskHeadSettings const& settings, std::string const& kind, Term task)
    : task_(std::move(task)),
      features_(parts, settings.features, kind),
      auxiliary_(settings.auxiliary),
      word_weight_(parts.word_weight),
      word_bias_(parts.word_bias) {
  if (auxiliary_ > 0 && parts.summary_is_first) throw Error("model.head.auxiliary: an auxiliary language-model loss needs a causal model");
}

std::vector<Term> TaskHead::terms() const {
  std::vector<Term> all{task_};
  if (auxiliary_ > 0) all.push_back({.weight = auxiliary_});
  return all;
}

std::vector<Prediction> TaskHead::predictions(Streams const& streams, Batch const& batch, Pass const& pass) const {
  std::vector<Prediction> all{{task_, logits(streams, batch, pass)}};
  if (auxiliary_ <= 0) return all;
  Tensor const& x = streams.last();
  Shape const& of_targets = batch["targets"].shape();
  std::vector<Index> shape(of_targets.begin(), of_targets.end());
  shape.push_back(x.size(-1));
  all.push_back({terms()[1], {reshape(x, shape), word_weight_, word_bias_}});
  return all;
}

}  // namespace heed
