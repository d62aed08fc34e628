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
      field(&score, "score", "score of a query and a key").one_of(Registry<ScoreKind>::names()),
      field(&scale, "scale", "factor of scaled_dot: rsqrt (1/√d), inverse (1/d), none, learned, 'power α' (d^−α), or a number"),
      field(&align, "align", "normalisation of scores to weights").one_of(Registry<AlignKind>::names()),
      field(&window, "window", "half-width D of the window of local_m and local_p, in keys").between(0, 1e9),
      field(&windowed, "windowed", "local_p only; false: the Gaussian without a window"),
      field(&read, "read", "soft: the weighted mean of the values; hard: the value of one sampled key").one_of(Registry<ReadKind>::names()),
      field(&softcap, "softcap", "c: a score e becomes c tanh(e/c), before a position's bias").between(0, 1e9),
      field(&query_key_norm, "query_key_norm",
            "rms: each head's queries and keys are divided by their root mean square (Henry et al. 2020)")
          .one_of({"none", "rms"}),
      field(&gate, "gate", "contexts times sigmoid(W x) before the output projection (Qiu et al. 2025)"),
      field(&forget, "forget", "e_ij += Σ_{l=j+1…i} log sigmoid(w·x_l); causal attention only (Lin et al. 2025)"),
      field(&differential, "differential", "weights are a¹ − λ a², two maps of half the width (Ye et al. 2024)"),
      field(&e.estimator, "estimator", "gradient estimator of hard attention")
          .one_of({"reinforce", "straight_through", "gumbel", "enumerate", "marginal"}),
      field(&e.baseline, "baseline", "reinforce: baseline that is subtracted from rewards")
          .one_of({"none", "moving_average", "self_critic", "leave_one_out"}),
      field(&e.samples, "samples", "hard attention: number of sampled passes over a batch, averaged").in(1, 1024),
      field(&e.entropy, "entropy", "reinforce: weight of the entropy bonus").in(0, 1e9),
      field(&e.expectation_rate, "expectation_rate", "reinforce: probability that a batch uses the expected context instead of samples")
          .in(0, 1),
      field(&e.reward_weight, "reward_weight", "reinforce: factor on rewards").in(0, 1e9),
      field(&e.temperature, "temperature", "gumbel: initial temperature of the softmax").between(0, 1e9),
      field(&e.temperature_decay, "temperature_decay", "gumbel: decay rate r of temperature · e^(-r step)").in(0, 1e9),
      field(&e.temperature_least, "temperature_least", "gumbel: lowest temperature of the decay").between(0, 1e9),
      field(&e.evaluate, "evaluate", "hard attention: how the context is read in evaluation").one_of({"argmax", "sample", "expectation"}),
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
    if (settings.read != "hard") return fmt::format("{}: applies only to the read 'hard', not to '{}'", key.name, settings.read);
    if (key.owner != nullptr && e.estimator != key.owner)
      return fmt::format("{}: applies only to the estimator {}, not to {}", key.name, key.owner, e.estimator);
  }
  if (settings.read != "hard") return std::nullopt;
  std::vector<std::string> distributions;
  for (auto const& kind : Registry<AlignKind>::all())
    if (kind.rows_are_distributions) distributions.push_back(kind.name);
  if (std::ranges::find(distributions, settings.align) == distributions.end()) {
    return fmt::format(
        "read: hard samples a key from each query's weights, but the weights of the align '{}' do not sum to one; those of {} do",
        settings.align, fmt::join(distributions, ", "));
  }
  if (e.estimator == "reinforce" && e.baseline == "leave_one_out" && e.samples < 2)
    return fmt::format("samples: leave_one_out compares each sample with the others: it needs at least 2, not {}", e.samples);
  if (e.sums_over_choices() && e.samples > 1)
    return fmt::format("samples: {} sums over every choice; it takes no {} samples", e.estimator, e.samples);
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
  if (align != "local_p" && !windowed) return fmt::format("windowed: applies only to local_p, not to '{}'", align);
  if (score != "scaled_dot" && scale != "rsqrt") return fmt::format("scale: the score '{}' has no scale; only scaled_dot has", score);
  if (differential && read == "hard")
    return "differential: a difference of weights is not a distribution from which the read 'hard' could sample";
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
