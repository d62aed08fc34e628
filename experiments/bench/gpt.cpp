#include "experiments/bench/gpt.hpp"

#include <algorithm>
#include <utility>

#include "autograd/graph.hpp"
#include "experiments/bench/measure.hpp"
#include "experiments/config/nearest.hpp"
#include "nn/decode.hpp"

namespace heed {

namespace {

std::vector<GptSize> const gpt_sizes{
    {"tiny", 2, 2, 64, 32, 16, 32, 65},
    {"nano", 4, 4, 128, 64, 12, 64, 65},        // nanoGPT's configuration for a CPU
    {"small", 6, 6, 384, 256, 8, 256, 65},      // nanoGPT's configuration for Tiny Shakespeare, with a smaller batch
    {"gpt2", 12, 12, 768, 1024, 4, 64, 50257},  // 124M parameters; llm.c's example for a CPU
};
std::vector<std::string> const works{"train", "forward", "sample"};

std::vector<GptSize> chosen_sizes(std::string const& name) {
  if (name.empty()) return {gpt_sizes.begin(), gpt_sizes.begin() + 3};
  expect_known("--size", name, names_of(gpt_sizes));
  return {*std::ranges::find(gpt_sizes, name, &GptSize::name)};
}

void bench_gpt(BenchOptions const& options, std::ostream& out) {
  auto const chosen = chosen_sizes(options.size);
  for (auto const& name : options.names) expect_known("bench gpt", name, works);
  write_model_heading("GPT", options, out);
  for (auto const& size : chosen) {
    for (auto const& what : works) {
      if (!options.names.empty() && std::ranges::find(options.names, what) == options.names.end()) continue;
      reset_resident_peak();
      GptSubject subject(size, options.recompute);
      measure_model({what, size.name, static_cast<double>(subject.tokens_of(what)), subject.work(what), options.recompute}, options, out);
    }
  }
}

Declared<BenchTopic> const gpt_benchmark{
    {"gpt",
     "GPTs of several sizes: a training step (forward, backward, clipping, AdamW), a forward pass, "
     "sampling: milliseconds, tokens per second, share of the machine's peak in matrix products, memory",
     bench_gpt}};

}  // namespace

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

std::function<void()> GptSubject::work(std::string const& name) {
  if (name == "train") return [this] { train(); };
  if (name == "forward")
    return [this] {
      NoGrad const quiet;
      static_cast<void>(loss().item());
    };
  return [this] {
    Index const start = 0;
    SamplingSettings settings;
    settings.temperature = 0.8;
    generate(*model_, {&start, 1}, size_.tokens - 1, settings, Stream(1, "bench"), [](Index) { return true; });
  };
}

Tensor GptSubject::loss() const {
  Pass pass;
  pass.training.recompute = recompute_;
  return model_->loss(batch_, pass);
}

}  // namespace heed
