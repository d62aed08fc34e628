#include "experiments/bench/gpt_subject.hpp"

#include <utility>

#include "autograd/graph.hpp"
#include "nn/generate.hpp"

namespace heed {

GptSubject::GptSubject(GptSize size, bool recompute) : size_(std::move(size)), recompute_(recompute), parameters_(1, DType::float32) {
  GptSettings settings;
  settings.layers = size_.layers;
  settings.heads = size_.heads;
  settings.width = size_.width;
  settings.context = size_.context;
  model_ = std::make_unique<Gpt>(parameters_, settings, size_.vocabulary);
  auto const tokens = [&](char const* what) {
    return Tensor::uniform({size_.batch, size_.tokens}, Stream(1, what), DType::float64, 0, static_cast<double>(size_.vocabulary))
        .to(DType::int64);
  };
  batch_ = {{"inputs", tokens("inputs")}, {"targets", tokens("targets")}};
}

void GptSubject::train() {
  if (!optimizer_) optimizer_ = make_optimizer(optimizer_choice(), parameters_);
  parameters_.clear_gradients();
  loss().backward();
  optimizer_->step(1e-3, clip_factor(gradient_norm(parameters_), 1));
}

void GptSubject::forward() const {
  NoGrad const quiet;
  static_cast<void>(loss().item());
}

void GptSubject::sample() const {
  Index const start = 0;
  SamplingSettings settings;
  settings.temperature = 0.8;
  generate(*model_, {&start, 1}, size_.tokens - 1, settings, Stream(1, "bench"), [](Index) { return true; });
}

std::function<void()> GptSubject::work(std::string const& name) {
  if (name == "train") return [this] { train(); };
  if (name == "forward") return [this] { forward(); };
  return [this] { sample(); };
}

Tensor GptSubject::loss() const {
  Pass pass;
  pass.training.recompute = recompute_;
  return model_->loss(batch_, pass);
}

}  // namespace heed
