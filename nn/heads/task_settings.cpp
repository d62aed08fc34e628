#include "nn/heads/task_settings.hpp"

#include "autograd/error.hpp"

namespace heed {

std::vector<Field> TaskHeadSettings::fields() {
  std::vector<Field> all = features.fields();
  all.push_back({.name = "auxiliary",
                 .target = &auxiliary,
                 .help = "weight of the language model's loss on the examples beside the task's (Radford et al. 2018: 0.5)",
                 .least = 0,
                 .greatest = 1000});
  return all;
}

std::vector<Need> TaskHeadSettings::examples(HeadViews const& views) const {
  std::vector<Need> needs{{"inputs", views.examples}};
  if (views.segments) needs.push_back({"segments", views.examples});
  if (predicts_tokens()) needs.push_back({"targets", views.examples});
  return needs;
}

namespace {

Term auxiliary_term(double weight) { return {.weight = weight}; }

}  // namespace

Auxiliary::Auxiliary(HeadParts const& parts, TaskHeadSettings const& settings)
    : weight_(settings.auxiliary), word_weight_(parts.word_weight), word_bias_(parts.word_bias) {
  if (weight_ > 0 && parts.summary_is_first)
    throw Error("model.head.auxiliary: a language model beside the task is of models that see the past alone");
}

void Auxiliary::add_to(std::vector<Term>& terms) const {
  if (weight_ > 0) terms.push_back(auxiliary_term(weight_));
}

void Auxiliary::add_to(std::vector<Prediction>& predictions, Streams const& streams, Batch const& batch) const {
  if (weight_ <= 0) return;
  Tensor const& targets = batch["targets"];
  Tensor const x = streams.last();
  std::vector<std::int64_t> shape(targets.shape().begin(), targets.shape().end());
  shape.push_back(x.size(-1));
  predictions.push_back({auxiliary_term(weight_), {reshape(x, shape), word_weight_, word_bias_}});
}

}  // namespace heed
