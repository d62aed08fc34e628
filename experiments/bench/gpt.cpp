#include "nn/models/gpt.hpp"

#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/graph.hpp"
#include "autograd/parallel.hpp"
#include "autograd/products.hpp"
#include "experiments/bench.hpp"
#include "experiments/bench/measure.hpp"
#include "experiments/config.hpp"
#include "experiments/nearest.hpp"
#include "nn/generate.hpp"
#include "nn/optimizer.hpp"

namespace heed {

namespace {

/// A model and its batch. `context` tokens fit, `tokens` are read.
struct Size {
  std::string name;
  std::int64_t layers, heads, width, context, batch, tokens, vocabulary;
};
std::vector<Size> const sizes{
    {"tiny", 2, 2, 64, 32, 16, 32, 65},
    {"nano", 4, 4, 128, 64, 12, 64, 65},        // nanoGPT's configuration for a CPU
    {"small", 6, 6, 384, 256, 8, 256, 65},      // nanoGPT's configuration for Tiny Shakespeare, with a smaller batch
    {"gpt2", 12, 12, 768, 1024, 4, 64, 50257},  // 124M parameters; llm.c's example for a CPU
};
std::vector<std::string> const works{"train", "forward", "sample"};

std::vector<Size> chosen_sizes(std::string const& name) {
  if (name.empty()) return {sizes.begin(), sizes.begin() + 3};
  std::vector<std::string> names;
  for (auto const& size : sizes) {
    if (size.name == name) return {size};
    names.push_back(size.name);
  }
  throw ConfigError(Place{std::make_shared<std::string>("--size")},
                    fmt::format("there is no '{}'{} (there are {})", name, did_you_mean(name, names), fmt::join(names, ", ")));
}

void check_works(std::vector<std::string> const& names) {
  for (auto const& name : names) {
    if (std::ranges::find(works, name) == works.end())
      throw ConfigError(Place{std::make_shared<std::string>("bench gpt")},
                        fmt::format("there is no '{}'{} (there are {})", name, did_you_mean(name, works), fmt::join(works, ", ")));
  }
}

/// A GPT on one random batch, with AdamW and clipping: what a training step is beside its data.
class Subject {
 public:
  Subject(Size const& size, bool recompute) : size_(size), parameters_(1, DType::float32) {
    GptSettings settings;
    settings.layers = size.layers;
    settings.heads = size.heads;
    settings.width = size.width;
    settings.context = size.context;
    model_ = std::make_unique<Gpt>(parameters_, settings, size.vocabulary);
    batch_ = {tokens("inputs"), tokens("targets"), {}, {}};
    recompute_ = recompute;
  }

  void train() {
    if (!optimizer_) optimizer_ = make_optimizer(optimizer_choice(), parameters_);
    parameters_.clear_gradients();
    loss().backward();
    optimizer_->step(1e-3, clip_factor(gradient_norm(parameters_), 1));
  }
  void forward() const {
    NoGrad const quiet;
    static_cast<void>(loss().item());
  }
  /// As many tokens as fit, one after the other, with the cache of keys and values.
  void sample() const {
    std::int64_t const start = 0;
    SamplingSettings settings;
    settings.temperature = 0.8;
    generate(*model_, {&start, 1}, size_.tokens - 1, settings, Stream(1, "bench"), [](std::int64_t) { return true; });
  }
  std::function<void()> work(std::string const& name) {
    if (name == "train") return [this] { train(); };
    if (name == "forward") return [this] { forward(); };
    return [this] { sample(); };
  }
  std::int64_t tokens_of(std::string const& name) const { return name == "sample" ? size_.tokens - 1 : size_.batch * size_.tokens; }

 private:
  Tensor tokens(char const* what) const {
    return Tensor::uniform({size_.batch, size_.tokens}, Stream(1, what), DType::float64, 0, static_cast<double>(size_.vocabulary))
        .to(DType::int64);
  }
  Tensor loss() const {
    Pass pass;
    pass.recompute = recompute_;
    return cross_entropy(model_->logits(batch_, pass), batch_.targets);
  }

  Size size_;
  Parameters parameters_;
  std::unique_ptr<Gpt> model_;
  std::unique_ptr<Optimizer> optimizer_;
  Batch batch_;
  bool recompute_ = false;
};

std::string factors() { return products().bfloat16 ? "bfloat16" : "float32"; }
std::string library() { return products().library == Products::Library::onednn || products().bfloat16 ? "onednn" : "openblas"; }

}  // namespace

void bench_gpt(BenchOptions const& options, std::ostream& out) {
  auto const chosen = chosen_sizes(options.size);
  check_works(options.names);
  if (!options.json) {
    out << fmt::format("GPT, {} products by {}, {}: median of {:g} s each\n\n", factors(), library(),
                       threads() == 1 ? "1 thread" : fmt::format("{} threads", threads()), options.seconds);
    out << fmt::format("{:<6} {:<8} {:>10} {:>10} {:>10} {:>10} {:>8} {:>8} {:>8} {:>9} {:>12}\n", "size", "what", "median ms", "min",
                       "max", "tokens/s", "GFLOP", "GFLOP/s", "of peak", "pool MB", "resident MB");
  }
  for (auto const& size : chosen) {
    for (auto const& what : works) {
      if (!options.names.empty() && std::ranges::find(options.names, what) == options.names.end()) continue;
      reset_resident_peak();
      Subject subject(size, options.recompute);
      auto const m = measure(subject.work(what), options.seconds);
      auto const resident = resident_peak();
      double const tokens_per_second = 1e3 * static_cast<double>(subject.tokens_of(what)) / m.median_ms;
      double const peak = peak_gflops();
      if (options.json) {
        out << nlohmann::ordered_json{{"what", what},
                                      {"size", size.name},
                                      {"threads", threads()},
                                      {"products", library()},
                                      {"precision", factors()},
                                      {"recompute", options.recompute},
                                      {"median_ms", m.median_ms},
                                      {"min_ms", m.min_ms},
                                      {"max_ms", m.max_ms},
                                      {"repetitions", m.repetitions},
                                      {"tokens_per_second", tokens_per_second},
                                      {"gflop", m.product_gflop},
                                      {"gflops", m.gflops()},
                                      {"peak_gflops", peak},
                                      {"share_of_peak", m.gflops() / peak},
                                      {"pool_mb", megabytes(m.peak_bytes)},
                                      {"peak_mb", megabytes(resident)}}
                   .dump()
            << '\n';
      } else {
        out << fmt::format("{:<6} {:<8} {:>10.2f} {:>10.2f} {:>10.2f} {:>10.0f} {:>8.3f} {:>8.1f} {:>7.1f}% {:>9.1f} {:>12.1f}\n",
                           size.name, what, m.median_ms, m.min_ms, m.max_ms, tokens_per_second, m.product_gflop, m.gflops(),
                           100 * m.gflops() / peak, megabytes(m.peak_bytes), megabytes(resident));
      }
      out.flush();
    }
  }
}

}  // namespace heed
