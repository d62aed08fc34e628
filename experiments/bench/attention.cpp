#include "nn/attention/attention.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/graph.hpp"
#include "autograd/parallel.hpp"
#include "autograd/random.hpp"
#include "experiments/bench/measure.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/config/yaml.hpp"

namespace heed {

namespace {

/// B sequences, H heads, T queries and T keys of width d.
struct AttentionSize {
  Index batch = 12, heads = 4, length = 256, width = 64;

  std::string text() const { return fmt::format("{}x{}x{}x{}", batch, heads, length, width); }
};

/// Parses "12x4x256x64"; an empty text gives the default. Throws ConfigError that names --size.
AttentionSize attention_size_of(std::string const& text) {
  AttentionSize size;
  if (text.empty()) return size;
  std::array<Index*, 4> const parts{&size.batch, &size.heads, &size.length, &size.width};
  char const* at = text.data();
  char const* const end = at + text.size();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    auto const [behind, error] = std::from_chars(at, end, *parts[i]);
    bool const last = i + 1 == parts.size();
    if (error != std::errc() || *parts[i] < 1 || *parts[i] > 1'000'000 || (last ? behind != end : behind == end || *behind != 'x'))
      throw ConfigError("--size", fmt::format("wants sequences x heads x tokens x width of a head, like 12x4x256x64, not '{}'", text));
    at = behind + (last ? 0 : 1);
  }
  return size;
}

/// One row of the table.
struct BenchVariant {
  AttentionSettings settings;
  std::string position = "none";

  std::array<std::string, 4> parts() const { return {settings.score, settings.align, settings.read, position}; }
  bool is_reference() const { return parts() == std::array<std::string, 4>{"scaled_dot", "softmax", "soft", "none"}; }
};

/// Scaled dot first, with which the others are compared; then every score × align, and scaled dot with each other read and position.
std::vector<BenchVariant> all_variants() {
  std::vector<BenchVariant> variants{{}};
  auto const add = [&](BenchVariant const& variant) {
    if (!variant.is_reference()) variants.push_back(variant);
  };
  for (auto const& align : Registry<AlignKind>::names()) {
    for (auto const& score : Registry<ScoreKind>::names()) {
      BenchVariant variant;
      variant.settings.score = score;
      variant.settings.align = align;
      variant.settings.set("window", 32.0);
      add(variant);
    }
  }
  for (auto const& read : Registry<ReadKind>::names()) {
    BenchVariant variant;
    variant.settings.read = read;
    add(variant);
  }
  for (auto const& position : Registry<PositionKind>::names()) add({.settings = {}, .position = position});
  return variants;
}

std::vector<BenchVariant> chosen(std::vector<std::string> const& names) {
  auto variants = all_variants();
  if (names.empty()) return variants;
  std::set<std::string> known;
  for (auto const& variant : variants)
    for (auto const& part : variant.parts()) known.insert(part);
  for (auto const& name : names) expect_known("bench attention", name, {known.begin(), known.end()});
  std::erase_if(variants, [&](BenchVariant const& variant) {
    auto const parts = variant.parts();
    bool const named = std::ranges::any_of(names, [&](auto const& name) { return std::ranges::find(parts, name) != parts.end(); });
    return !named && !variant.is_reference();
  });
  return variants;
}

/// One attention layer between given queries, keys and values, all of them N(0, 1) and wanting gradients.
class Bench {
 public:
  Bench(BenchVariant const& variant, AttentionSize const& size, BenchOptions const& options)
      : parameters_(1, DType::float32), position_(make_position(variant.position, Scope(parameters_).at("embedding"), shape(size))) {
    visibility_.causal = options.causal, visibility_.sees = options.sees;
    attention_.emplace(Scope(parameters_).at("attention"), variant.settings, HeadShape{size.heads, size.width, size.length},
                       options.dropout, position_.get());
    Shape const wanted{size.batch, size.length, size.heads * size.width};
    for (auto const* name : {"query", "key", "value"})
      inputs_.push_back(Tensor::normal(wanted, Stream(1, "bench").child(name), DType::float32).set_requires_grad());
    wanted_ = inputs_;
    for (auto const& [name, parameter] : parameters_.all()) wanted_.push_back(parameter);
    seed_ = Tensor::normal(wanted, Stream(1, "bench").child("gradient"), DType::float32);
    pass_.training.noise = Stream(1, "bench").child("noise");
  }

  void forward() const {
    NoGrad const no_grad;
    context();
  }
  void forward_backward() {
    Tensor const c = context();
    for (auto& x : wanted_) x.clear_grad();
    backward(c, seed_);
  }

 private:
  static PositionShape shape(AttentionSize const& size) { return {size.length, size.heads * size.width, size.heads}; }
  Tensor context() const {
    return (*attention_)(attention_->rotated(inputs_[0], 0), attention_->rotated(inputs_[1], 0), inputs_[2], visibility_, pass_);
  }

  Parameters parameters_;
  std::unique_ptr<Position> position_;
  std::optional<Attention> attention_;
  std::vector<Tensor> inputs_, wanted_;
  Tensor seed_;
  Visibility visibility_;
  Pass pass_;
};

/// "causal, sees 128, dropout 0.1".
std::string what_is_seen(BenchOptions const& options) {
  std::string keys = options.causal ? "causal" : options.sees > 0 ? "both sides" : "every key visible";
  if (options.sees > 0) keys += fmt::format(", sees {}", options.sees);
  return options.dropout > 0 ? fmt::format("{}, dropout {:g}", keys, options.dropout) : keys;
}

void bench_attention(BenchOptions const& options, std::ostream& out) {
  AttentionSize const size = attention_size_of(options.size);
  auto const variants = chosen(options.names);
  if (!options.json) {
    out << fmt::format("attention, B x H x T x d = {}, {}, float32, {}: median of {:g} s each\n\n", size.text(), what_is_seen(options),
                       threads_in_words(), options.seconds);
    out << fmt::format("{:<11} {:<9} {:<5} {:<11} {:>10} {:>14} {:>9} {:>9} {:>8}\n", "score", "align", "read", "position", "forward ms",
                       "with gradients", "x scaled", "peak MB", "x scaled");
  }
  std::optional<Measurement> reference;
  for (auto const& variant : variants) {
    Bench subject(variant, size, options);
    auto const forward = measure_time([&] { subject.forward(); }, options.seconds);
    auto const both = measure_time([&] { subject.forward_backward(); }, options.seconds);
    if (!reference) reference = both;
    auto const& s = variant.settings;
    if (options.json) {
      for (auto const& [what, m] : {std::pair{"attention.forward", forward}, std::pair{"attention.forward_backward", both}}) {
        out << nlohmann::ordered_json{{"what", what},
                                      {"size", size.text()},
                                      {"threads", threads()},
                                      {"score", s.score},
                                      {"align", s.align},
                                      {"read", s.read},
                                      {"position", variant.position},
                                      {"causal", options.causal},
                                      {"sees", options.sees},
                                      {"dropout", options.dropout},
                                      {"median_ms", m.median_ms},
                                      {"min_ms", m.min_ms},
                                      {"max_ms", m.max_ms},
                                      {"repetitions", m.repetitions},
                                      {"peak_mb", megabytes(m.peak_bytes)}}
                   .dump()
            << '\n';
      }
    } else {
      out << fmt::format("{:<11} {:<9} {:<5} {:<11} {:>10.2f} {:>14.2f} {:>9.2f} {:>9.1f} {:>8.2f}\n", s.score, s.align, s.read,
                         variant.position, forward.median_ms, both.median_ms, both.median_ms / reference->median_ms,
                         megabytes(both.peak_bytes), static_cast<double>(both.peak_bytes) / static_cast<double>(reference->peak_bytes));
    }
    out.flush();
  }
}

Declared<BenchTopic> const attention_benchmark{{"attention",
                                                "attention alone, forward and with gradients, for every score × align, read and position: "
                                                "milliseconds and pool memory, relative to scaled dot-product attention",
                                                bench_attention}};

}  // namespace

}  // namespace heed
