#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/blas/products.hpp"
#include "autograd/graph.hpp"
#include "autograd/parallel.hpp"
#include "autograd/random.hpp"
#include "experiments/bench/bench.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/train/train.hpp"
#include "nn/decode.hpp"

namespace heed {

namespace {

/// A model's work, and the number of tokens in it.
struct ModelWork {
  std::string what, size;
  double tokens;
  std::function<void()> run;
  bool recompute = false;
  std::optional<Index> critical_path = {};  ///< sequential operations of the loss
};

/// Writes the heading of a table of models; nothing for JSON.
void write_model_heading(std::string const& title, BenchOptions const& options, std::ostream& out) {
  if (options.json) return;
  out << fmt::format("{}, factors of products {}, {}: median of {:g} s each\n\n", title, factors_in_words(), threads_in_words(),
                     options.seconds);
  out << fmt::format("{:<6} {:<8} {:>10} {:>10} {:>10} {:>10} {:>8} {:>8} {:>8} {:>9} {:>12}\n", "size", "what", "median ms", "min", "max",
                     "tokens/s", "GFLOP", "GFLOP/s", "of peak", "pool MB", "resident MB");
}

/// Repeats the work and writes a row: milliseconds, tokens per second, operations of products and their share of the machine's peak, memory
/// (resident: since reset_resident_peak()).
void measure_model(ModelWork const& work, BenchOptions const& options, std::ostream& out) {
  auto const m = measure_time(work.run, options.seconds);
  auto const resident = resident_peak();
  double const tokens_per_second = 1e3 * work.tokens / m.median_ms;
  auto const [peak, share] = share_of_peak(work.run, m.product_gflop, options.seconds);
  if (options.json) {
    nlohmann::ordered_json row{{"what", work.what},
                               {"size", work.size},
                               {"threads", threads()},
                               {"library", matrix_library()},
                               {"precision", products().bfloat16 ? "bfloat16" : "float32"},
                               {"recompute", work.recompute}};
    row.update(times_of(m));
    row.update({{"tokens_per_second", tokens_per_second},
                {"gflop", m.product_gflop},
                {"gflops", m.gflops()},
                {"peak_gflops", peak},
                {"share_of_peak", share},
                {"pool_mb", megabytes(m.peak_bytes)},
                {"peak_mb", megabytes(resident)}});
    if (work.critical_path) row["critical_path"] = *work.critical_path;
    out << row.dump() << '\n';
  } else {
    out << fmt::format("{:<6} {:<8} {:>10.2f} {:>10.2f} {:>10.2f} {:>10.0f} {:>8.3f} {:>8.1f} {:>7.1f}% {:>9.1f} {:>12.1f}\n", work.size,
                       work.what, m.median_ms, m.min_ms, m.max_ms, tokens_per_second, m.product_gflop, m.gflops(), 100 * share,
                       megabytes(m.peak_bytes), megabytes(resident));
    if (work.critical_path) out << fmt::format("critical path of the loss: {} operations\n", *work.critical_path);
  }
  out.flush();
}

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

void bench_training(BenchOptions const& options, std::ostream& out) {
  if (options.names.empty()) {
    if (options.what.empty()) return;  // of all topics, the one that needs a file
    throw ConfigError("bench training", "which one? A YAML file is missing: heed bench training CONFIG [key.path=value …]");
  }
  std::vector<std::string> overrides(options.names.begin() + 1, options.names.end());
  if (options.precision == "bfloat16") overrides.emplace_back("train.precision=bfloat16");
  if (options.recompute) overrides.emplace_back("train.recompute=true");
  auto const experiment = load_experiment(options.names.front(), overrides, options.folders);
  reset_resident_peak();
  Trainer trainer(experiment, true);
  auto const step = [&trainer] {
    Row row;
    trainer.train_step(row);
  };
  step();  // which says how many tokens one reads, about: rows of texts differ in length
  write_model_heading("a training step of " + options.names.front(), options, out);
  measure_model({.what = "train",
                 .size = experiment.settings.name,
                 .tokens = static_cast<double>(trainer.tokens_read()),
                 .run = step,
                 .recompute = experiment.settings.train.recompute,
                 .critical_path = trainer.critical_path()},
                options, out);
}

Declared<BenchTopic> const training_benchmark{
    {"training",
     "a training step of any configuration, as in heed run, with its data: columns as for gpt, tokens of "
     "the first step without padding; and the critical path of the loss in operations",
     bench_training}};

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
