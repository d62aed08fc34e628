#include "nn/attention/steps.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "nn/files/number.hpp"

namespace heed {

namespace {

/// The keys of all aligns, each once.
std::vector<StepKey> keys_of_aligns() {
  std::vector<StepKey> keys;
  for (auto const& kind : Registry<AlignKind>::all())
    for (auto const& key : kind.keys)
      if (std::ranges::find(keys, key.name, &StepKey::name) == keys.end()) keys.push_back(key);
  return keys;
}

/// Why hard attention cannot sample from the weights of an align.
std::optional<std::string> cannot_sample(std::string const& align) {
  std::vector<std::string> distributions;
  for (auto const& kind : Registry<AlignKind>::all())
    if (kind.rows_are_distributions) distributions.push_back(kind.name);
  if (std::ranges::find(distributions, align) != distributions.end()) return std::nullopt;
  return fmt::format(
      "read: hard samples a key from each query's weights, but the weights of the align '{}' do not sum to one; those of {} do", align,
      fmt::join(distributions, ", "));
}

}  // namespace

template void Registry<ScoreKind>::add(ScoreKind);
template void Registry<AlignKind>::add(AlignKind);

Tensor Align::operator()(Tensor const& scores, Tensor const& query, Visibility const& visibility) const {
  AttentionForm form{.heads = scores.size(1), .visibility = visibility};
  AttentionInputs in{merge_heads(query), Tensor({scores.size(0), scores.size(3), 0}, scores.dtype())};  // keys that are only counted
  fill(form, in, in.query);
  return composed_weights(form, in, scores);
}

bool LinearName::from_word(std::string_view variant) {
  auto const found = std::ranges::find(linear_variants(), variant, &LinearVariant::name);
  if (found == linear_variants().end()) return false;
  name = variant;
  of->of_linear = found->settings;
  of->convolution = found->convolution;
  of->scale = found->scale;
  return true;
}

std::vector<std::string> LinearName::short_words() { return mapped(linear_variants(), &LinearVariant::name); }

std::vector<Field> AttentionSettings::fields() {
  linear.of = this;
  std::vector<Field> all{
      field(&linear, "linear", "attention without softmax: a variant, whose keys may be changed beside it"),  // first: it sets the others
      field(&score, "score", "score of a query and a key").one_of(Registry<ScoreKind>::names()),
      field(&scale, "scale",
            "factor of scaled_dot: rsqrt (1/√d), inverse (1/d), none, learned, log_length (log n_i/(√d log n), n: the context), 'power α' "
            "(d^−α), or a number"),
      field(&align, "align", "normalisation of scores to weights").one_of(Registry<AlignKind>::names())};
  for (auto const& key : keys_of_aligns()) {
    auto& value = of_align.try_emplace(key.name, key.usual).first->second;
    if (auto* const number = std::get_if<double>(&value))
      all.push_back(field(number, key.name, key.help).between(0, 1e9));
    else
      all.push_back(field(std::get_if<bool>(&value), key.name, key.help));
  }
  all = extended(std::move(all),
                 {field(&read, "read", "soft: the weighted mean of the values; hard: the value of one sampled key")
                      .one_of(Registry<ReadKind>::names()),
                  field(&softcap, "softcap", "c: a score e becomes c tanh(e/c), before a position's bias").between(0, 1e9),
                  field(&query_key_norm, "query_key_norm",
                        "rms: each head's queries and keys are divided by their root mean square (Henry et al. 2020)")
                      .one_of({"none", "rms"}),
                  field(&gate, "gate", "contexts times sigmoid(W x) before the output projection (Qiu et al. 2025)"),
                  field(&forget, "forget", "e_ij += Σ_{l=j+1…i} log sigmoid(w·x_l); causal attention only (Lin et al. 2025)"),
                  field(&differential, "differential", "weights are a¹ − λ a², two maps of half the width (Ye et al. 2024)")});
  all = extended(std::move(all), estimator.fields());
  all.push_back(
      field(&convolution, "convolution", "queries, keys and values: a causal convolution over the last w tokens, per channel").in(1, 64));
  return extended(std::move(all), of_linear.fields());
}

std::string AttentionSettings::key_of_many_heads() const {
  if (is_linear()) return "linear";
  if (convolution) return "convolution";
  if (query_key_norm != "none") return "query_key_norm";
  return gate ? "gate" : forget ? "forget" : differential ? "differential" : "";
}

std::optional<std::string> AttentionSettings::contradiction_of_linear() const {
  constexpr std::array of_softmax{"score", "align", "read", "softcap", "query_key_norm", "gate", "forget", "differential"};
  for (auto const& key : changed())
    if (std::ranges::find(of_softmax, key) != of_softmax.end())
      return fmt::format("{}: linear attention ('{}') has no scores and no weights", key, linear.name);
  if (!fixed_scale(scale, 1)) return fmt::format("scale: '{}' is not one of linear attention's: rsqrt, inverse, none or a number", scale);
  return of_linear.contradiction();
}

std::optional<std::string> AttentionSettings::contradiction() {
  if (is_linear()) return contradiction_of_linear();
  if (auto const keys = of_linear.changed(); !keys.empty()) return keys.front() + ": applies only to linear attention (linear: NAME)";
  if (scale != "learned" && scale != "log_length" && !fixed_scale(scale, 1))
    return fmt::format("scale: '{}' is neither a number nor 'power' with one nor one of rsqrt, inverse, none, learned, log_length", scale);
  if (auto const wrong = contradiction_of_align()) return wrong;
  if (score != "scaled_dot" && scale != "rsqrt") return fmt::format("scale: the score '{}' has no scale; only scaled_dot has", score);
  if (differential && read == "hard")
    return "differential: a difference of weights is not a distribution from which the read 'hard' could sample";
  if (auto const wrong = estimator.contradiction_of(read)) return wrong;
  return read == "hard" ? cannot_sample(align) : std::nullopt;
}

StepValue AttentionSettings::value_of(std::string const& key) const {
  auto const keys = keys_of_aligns();
  auto const set = of_align.find(key);
  return set != of_align.end() ? set->second : std::ranges::find(keys, key, &StepKey::name)->usual;
}

std::vector<std::string> AttentionSettings::changed() const {
  AttentionSettings own = *this, usual;
  return differing_fields(own.fields(), usual.fields());
}

std::optional<std::string> AttentionSettings::contradiction_of_align() const {
  for (auto const& name : changed()) {
    std::vector<std::string> owners;
    for (auto const& kind : Registry<AlignKind>::all())
      if (std::ranges::find(kind.keys, name, &StepKey::name) != kind.keys.end()) owners.push_back(kind.name);
    if (!owners.empty() && std::ranges::find(owners, align) == owners.end())
      return fmt::format("{}: applies only to the align {}, not to '{}'", name, fmt::join(owners, " or "), align);
  }
  return std::nullopt;
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
  if (found == attention_names().end()) {
    AttentionSettings of_variant;
    of_variant.linear.of = &of_variant;
    if (!of_variant.linear.from_word(word)) return false;
    *this = of_variant;
    return true;
  }
  *this = {};
  score = found->score;
  align = found->align;
  read = found->read;
  return true;
}

std::vector<std::string> AttentionSettings::short_words() {
  auto result = mapped(attention_names(), &AttentionName::name);
  std::ranges::copy(linear.short_words(), std::back_inserter(result));
  return result;
}

}  // namespace heed
