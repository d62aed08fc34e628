#include "nn/attention/attention.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/graph.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/parallel.hpp"
#include "autograd/random.hpp"
#include "experiments/bench/bench.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/config/yaml.hpp"
#include "nn/files/number.hpp"

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
  std::string_view rest = text;
  for (Index* const part : {&size.batch, &size.heads, &size.length, &size.width}) {
    auto const end = std::min(rest.find('x'), rest.size());
    auto const number = parsed_number<Index>(rest.substr(0, end));
    bool const last = part == &size.width;
    if (!number || *number < 1 || *number > 1'000'000 || last != (end == rest.size()))
      throw ConfigError("--size", fmt::format("wants sequences x heads x tokens x width of a head, like 12x4x256x64, not '{}'", text));
    *part = *number;
    rest.remove_prefix(last ? end : end + 1);
  }
  return size;
}

/// One row of the table.
struct BenchVariant {
  AttentionSettings settings;
  std::string position = "none";

  std::array<std::string, 4> parts() const {
    if (settings.is_linear()) return {settings.linear.name, "linear", "state", position};
    return {settings.score, settings.align, settings.read, position};
  }
  bool is_reference() const { return parts() == std::array<std::string, 4>{"scaled_dot", "softmax", "soft", "none"}; }
};

/// Scaled dot first, with which the others are compared; then every score × align, scaled dot with each other read and position, and, if
/// causal, the recurrences of linear attention.
std::vector<BenchVariant> all_variants(bool causal) {
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
  for (auto const& linear : linear_variants())
    if (causal) variants.emplace_back().settings.from_word(linear.name);
  return variants;
}

std::vector<BenchVariant> chosen(std::vector<std::string> const& names, bool causal) {
  auto variants = all_variants(causal);
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

/// What one row measures: contexts of given queries, keys and values, all of them N(0, 1) and wanting gradients.
class Bench {
 public:
  Bench(BenchVariant const& variant, AttentionSize const& size, BenchOptions const& options) : parameters_(1, DType::float32) {
    Shape const wanted{size.batch, size.length, size.heads * size.width};
    for (auto const* name : {"query", "key", "value"}) inputs_.push_back(drawn(name, wanted));
    seed_ = Tensor::normal(wanted, Stream(1, "bench").child("gradient"), DType::float32);
    wanted_ = inputs_;
    if (variant.settings.is_linear())
      with_recurrence(variant.settings.of_linear, size);
    else
      with_scores(variant, size, options);
  }

  void forward() const {
    NoGrad const no_grad;
    context_();
  }
  void forward_backward() {
    Tensor const c = context_();
    for (auto& x : wanted_) x.clear_grad();
    backward(c, seed_);
  }

 private:
  static Tensor drawn(char const* name, Shape const& shape) {
    return Tensor::normal(shape, Stream(1, "bench").child(name), DType::float32).set_requires_grad();
  }

  void with_scores(BenchVariant const& variant, AttentionSize const& size, BenchOptions const& options) {
    PositionShape const shape{size.length, size.heads * size.width, size.heads};
    position_ = make_position(variant.position, Scope(parameters_).at("embedding"), shape);
    Visibility visibility;
    visibility.causal = options.causal, visibility.sees = options.sees;
    attention_.emplace(Scope(parameters_).at("attention"), variant.settings, HeadShape{size.heads, size.width, size.length},
                       options.dropout, position_.get());
    for (auto const& [name, parameter] : parameters_.all()) wanted_.push_back(parameter);
    Pass pass;
    pass.training.noise = Stream(1, "bench").child("noise");
    context_ = [this, visibility, pass] {
      return (*attention_)(attention_->rotated(inputs_[0], 0), attention_->rotated(inputs_[1], 0), inputs_[2], visibility, pass);
    };
  }

  /// The recurrence alone, with decays and erasing keys given too; keys have length one.
  void with_recurrence(LinearSettings const& settings, AttentionSize const& size) {
    Index const all = size.heads * size.width, decays = settings.decay == "channel" ? all : size.heads;
    LinearInputs in{inputs_[0], inputs_[1], inputs_[2]};
    NoGrad const constants;
    in.key = wanted_[1] = scale(in.key, 1 / std::sqrt(to_double(size.width))).set_requires_grad();
    if (settings.write == "delta") wanted_.push_back(in.erase = scale(in.key, 0.5).set_requires_grad());
    if (settings.decay != "none") {
      in.log_decay = scale(abs(drawn("decay", {size.batch, size.length, decays})), -0.1);
      if (settings.decay != "fixed") wanted_.push_back(in.log_decay.set_requires_grad());
    }
    LinearInputs total = in;
    total.value = Tensor::full({size.batch, size.length, size.heads}, 1, DType::float32);
    context_ = [in, total, heads = size.heads, normalised = settings.normaliser == "sum"] {
      Tensor const contexts = linear_attention({.heads = heads}, in).context;
      return normalised ? times_per_head(contexts, linear_attention({.heads = heads}, total).context) : contexts;
    };
  }

  Parameters parameters_;
  std::unique_ptr<Position> position_;
  std::optional<Attention> attention_;
  std::vector<Tensor> inputs_, wanted_;
  Tensor seed_;
  std::function<Tensor()> context_;
};

/// "causal, sees 128, dropout 0.1".
std::string what_is_seen(BenchOptions const& options) {
  std::string keys = options.causal ? "causal" : options.sees > 0 ? "both sides" : "every key visible";
  if (options.sees > 0) keys += fmt::format(", sees {}", options.sees);
  return options.dropout > 0 ? fmt::format("{}, dropout {:g}", keys, options.dropout) : keys;
}

void bench_attention(BenchOptions const& options, std::ostream& out) {
  AttentionSize const size = attention_size_of(options.size);
  auto const variants = chosen(options.names, options.causal);
  if (!options.json) {
    out << fmt::format("attention, B x H x T x d = {}, {}, float32, {}: median of {:g} s each\n\n", size.text(), what_is_seen(options),
                       threads_in_words(), options.seconds);
    out << fmt::format("{:<14} {:<9} {:<5} {:<11} {:>10} {:>14} {:>9} {:>9} {:>8}\n", "score", "align", "read", "position", "forward ms",
                       "with gradients", "x scaled", "peak MB", "x scaled");
  }
  std::optional<Measurement> reference;
  for (auto const& variant : variants) {
    Bench subject(variant, size, options);
    auto const forward = measure_time([&] { subject.forward(); }, options.seconds);
    auto const both = measure_time([&] { subject.forward_backward(); }, options.seconds);
    if (!reference) reference = both;
    auto const [score, align, read, position] = variant.parts();
    if (options.json) {
      for (auto const& [what, m] : {std::pair{"attention.forward", forward}, std::pair{"attention.forward_backward", both}}) {
        nlohmann::ordered_json row{
            {"what", what}, {"size", size.text()},  {"threads", threads()},     {"score", score},       {"align", align},
            {"read", read}, {"position", position}, {"causal", options.causal}, {"sees", options.sees}, {"dropout", options.dropout}};
        row.update(times_of(m));
        row["peak_mb"] = megabytes(m.peak_bytes);
        out << row.dump() << '\n';
      }
    } else {
      out << fmt::format("{:<14} {:<9} {:<5} {:<11} {:>10.2f} {:>14.2f} {:>9.2f} {:>9.1f} {:>8.2f}\n", score, align, read, position,
                         forward.median_ms, both.median_ms, both.median_ms / reference->median_ms, megabytes(both.peak_bytes),
                         static_cast<double>(both.peak_bytes) / static_cast<double>(reference->peak_bytes));
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
