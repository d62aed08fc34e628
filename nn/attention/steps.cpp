#include "nn/attention/steps.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "nn/files/number.hpp"

namespace heed {

std::vector<Field> AttentionSettings::fields() {
  EstimatorSettings& e = estimator;
  return {
      {.name = "score", .target = &score, .help = "how well a query and a key match", .words = Registry<ScoreKind>::names()},
      {.name = "scale", .target = &scale, .help = "of scaled_dot: rsqrt, inverse, none, learned, 'power α' (d^−α), or a number"},
      {.name = "align", .target = &align, .help = "weights from scores", .words = Registry<AlignKind>::names()},
      {.name = "window",
       .target = &window,
       .help = "D of local_m and local_p: keys at most so far from the centre",
       .least = 0,
       .greatest = 1e9,
       .open = true},
      {.name = "windowed", .target = &windowed, .help = "of local_p; false: no window, the Gaussian alone"},
      {.name = "read", .target = &read, .help = "a context from weights and values", .words = Registry<ReadKind>::names()},
      {.name = "softcap",
       .target = &softcap,
       .help = "c: a score e becomes c tanh(e/c), before a position's bias",
       .least = 0,
       .greatest = 1e9,
       .open = true},
      {.name = "query_key_norm",
       .target = &query_key_norm,
       .help = "rms: each head's queries and keys are divided by their root mean square (Henry et al. 2020)",
       .words = {"none", "rms"}},
      {.name = "gate", .target = &gate, .help = "contexts times sigmoid(W x) before the output projection (Qiu et al. 2025)"},
      {.name = "forget", .target = &forget, .help = "e_ij += Σ_{l=j+1…i} log sigmoid(w·x_l), of the past alone (Lin et al. 2025)"},
      {.name = "differential", .target = &differential, .help = "weights are a¹ − λ a², two maps of half the width (Ye et al. 2024)"},
      {.name = "estimator",
       .target = &e.estimator,
       .help = "of hard: its gradient",
       .words = {"reinforce", "straight_through", "gumbel", "enumerate", "marginal"}},
      {.name = "baseline",
       .target = &e.baseline,
       .help = "of reinforce: what rewards are compared with",
       .words = {"none", "moving_average", "self_critic", "leave_one_out"}},
      {.name = "samples", .target = &e.samples, .help = "of hard: passes over a batch, averaged", .least = 1, .greatest = 1024},
      {.name = "entropy", .target = &e.entropy, .help = "of reinforce: weight of the entropy bonus", .least = 0, .greatest = 1e9},
      {.name = "expectation_rate",
       .target = &e.expectation_rate,
       .help = "of reinforce: probability that a batch reads the expectation",
       .least = 0,
       .greatest = 1},
      {.name = "reward_weight", .target = &e.reward_weight, .help = "of reinforce: factor on rewards", .least = 0, .greatest = 1e9},
      {.name = "temperature", .target = &e.temperature, .help = "of gumbel", .least = 0, .greatest = 1e9, .open = true},
      {.name = "temperature_decay",
       .target = &e.temperature_decay,
       .help = "of gumbel: r of temperature · e^(-r step)",
       .least = 0,
       .greatest = 1e9},
      {.name = "temperature_least",
       .target = &e.temperature_least,
       .help = "of gumbel: where the decay ends",
       .least = 0,
       .greatest = 1e9,
       .open = true},
      {.name = "evaluate",
       .target = &e.evaluate,
       .help = "of hard: what is read while evaluating",
       .words = {"argmax", "sample", "expectation"}},
  };
}

namespace {

/// Keys of hard attention that say nothing where they stand.
std::optional<std::string> estimator_contradiction(AttentionSettings const& settings) {
  EstimatorSettings const& e = settings.estimator;
  EstimatorSettings const untouched;
  struct Key {
    char const* name;
    bool touched;
    char const* owner;  ///< the one estimator that has it; null: all
  };
  Key const keys[]{
      {"estimator", e.estimator != untouched.estimator, nullptr},
      {"baseline", e.baseline != untouched.baseline, "reinforce"},
      {"samples", e.samples != untouched.samples, nullptr},
      {"entropy", e.entropy != untouched.entropy, "reinforce"},
      {"expectation_rate", e.expectation_rate != untouched.expectation_rate, "reinforce"},
      {"reward_weight", e.reward_weight != untouched.reward_weight, "reinforce"},
      {"temperature", e.temperature != untouched.temperature, "gumbel"},
      {"temperature_decay", e.temperature_decay != untouched.temperature_decay, "gumbel"},
      {"temperature_least", e.temperature_least != untouched.temperature_least, "gumbel"},
      {"evaluate", e.evaluate != untouched.evaluate, nullptr},
  };
  for (Key const& key : keys) {
    if (!key.touched) continue;
    if (settings.read != "hard") return fmt::format("{}: is of the read 'hard' alone, not of '{}'", key.name, settings.read);
    if (key.owner != nullptr && e.estimator != key.owner)
      return fmt::format("{}: is of the estimator {} alone, not of {}", key.name, key.owner, e.estimator);
  }
  if (settings.read != "hard") return std::nullopt;
  std::vector<std::string> distributions;
  for (auto const& kind : Registry<AlignKind>::all())
    if (kind.rows_are_distributions) distributions.push_back(kind.name);
  if (std::ranges::find(distributions, settings.align) == distributions.end()) {
    return fmt::format("read: hard draws a key from each row of weights, and the rows of the align '{}' do not sum to one; those of {} do",
                       settings.align, fmt::join(distributions, ", "));
  }
  if (e.estimator == "reinforce" && e.baseline == "leave_one_out" && e.samples < 2)
    return fmt::format("samples: leave_one_out compares each sample with the others: it needs at least 2, not {}", e.samples);
  if (e.sums_over_choices() && e.samples > 1) return fmt::format("samples: {} takes every choice, not {} samples", e.estimator, e.samples);
  return std::nullopt;
}

}  // namespace

std::string AttentionSettings::key_of_many_heads() const {
  if (query_key_norm != "none") return "query_key_norm";
  return gate ? "gate" : forget ? "forget" : differential ? "differential" : "";
}

std::optional<std::string> AttentionSettings::contradiction() {
  if (scale != "learned" && !fixed_scale(scale, 1))
    return fmt::format("scale: '{}' is neither a number nor 'power' with one nor one of rsqrt, inverse, none, learned", scale);
  AttentionSettings const untouched;
  bool const local = align == "local_m" || align == "local_p";
  if (!local && window != untouched.window) return fmt::format("window: the align '{}' has no window; local_m and local_p have", align);
  if (align != "local_p" && !windowed) return fmt::format("windowed: is of local_p alone, not of '{}'", align);
  if (score != "scaled_dot" && scale != "rsqrt") return fmt::format("scale: the score '{}' has no scale; only scaled_dot has", score);
  if (differential && read == "hard")
    return "differential: a difference of weights is no distribution that the read 'hard' could draw from";
  return estimator_contradiction(*this);
}

std::optional<double> fixed_scale(std::string const& scale, double width) {
  if (scale == "rsqrt") return 1 / std::sqrt(width);
  if (scale == "inverse") return 1 / width;
  if (scale == "none") return 1;
  constexpr std::string_view power = "power ";
  bool const is_power = scale.starts_with(power);
  auto const number = parsed_number<double>(std::string_view(scale).substr(is_power ? power.size() : 0));
  if (!number || !std::isfinite(*number)) return std::nullopt;
  return is_power ? std::pow(width, -*number) : *number;
}

std::vector<AttentionName> const& attention_names() {
  static std::vector<AttentionName> const table{
      {"additive", "additive", "softmax", "soft"}, {"dot", "dot", "softmax", "soft"},
      {"scaled", "scaled_dot", "softmax", "soft"}, {"scaled-dot", "scaled_dot", "softmax", "soft"},
      {"general", "general", "softmax", "soft"},   {"local-m", "general", "local_m", "soft"},
      {"local-p", "general", "local_p", "soft"},   {"hard", "scaled_dot", "softmax", "hard"}};
  return table;
}

bool AttentionSettings::from_word(std::string_view word) {
  auto const found = std::ranges::find(attention_names(), word, &AttentionName::name);
  if (found == attention_names().end()) return false;
  *this = {};
  score = found->score;
  align = found->align;
  read = found->read;
  return true;
}

std::vector<std::string> AttentionSettings::short_words() {
  std::vector<std::string> result;
  std::ranges::transform(attention_names(), std::back_inserter(result), &AttentionName::name);
  return result;
}

}  // namespace heed
