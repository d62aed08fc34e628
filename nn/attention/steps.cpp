#include "nn/attention/steps.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace heed {

namespace {

/// Never destroyed and made on first use: declarations are static objects of many files.
template <class Step>
std::vector<StepKind<Step>>& registry() {
  static auto* const kinds = new std::vector<StepKind<Step>>;
  return *kinds;
}

template <class Step>
std::vector<std::string> names() {
  std::vector<std::string> result;
  std::ranges::transform(step_kinds<Step>(), std::back_inserter(result), &StepKind<Step>::name);
  std::ranges::sort(result);
  return result;
}

}  // namespace

template <>
std::vector<StepKind<Score>>& step_kinds<Score>() {
  return registry<Score>();
}
template <>
std::vector<StepKind<Align>>& step_kinds<Align>() {
  return registry<Align>();
}
template <>
std::vector<StepKind<Read>>& step_kinds<Read>() {
  return registry<Read>();
}

std::vector<Field> AttentionSettings::fields() {
  return {
      {.name = "score", .target = &score, .help = "how well a query and a key match", .words = names<Score>()},
      {.name = "scale", .target = &scale, .help = "of scaled_dot: rsqrt, inverse, none, learned, or a number"},
      {.name = "align", .target = &align, .help = "weights from scores", .words = names<Align>()},
      {.name = "read", .target = &read, .help = "a context from weights and values", .words = names<Read>()},
  };
}

std::optional<std::string> AttentionSettings::contradiction() {
  static std::vector<std::string> const words{"rsqrt", "inverse", "none", "learned"};
  if (std::ranges::find(words, scale) == words.end()) {
    double number = 0;
    auto const [end, error] = std::from_chars(scale.data(), scale.data() + scale.size(), number);
    if (error != std::errc() || end != scale.data() + scale.size() || !std::isfinite(number)) {
      return fmt::format("scale: '{}' is neither a number nor one of {}", scale, fmt::join(words, ", "));
    }
  }
  if (score != "scaled_dot" && scale != "rsqrt") return fmt::format("scale: the score '{}' has no scale; only scaled_dot has", score);
  return std::nullopt;
}

std::vector<AttentionName> const& attention_names() {
  static std::vector<AttentionName> const table{
      {"dot", "dot", "softmax", "soft"}, {"scaled", "scaled_dot", "softmax", "soft"}, {"scaled-dot", "scaled_dot", "softmax", "soft"}};
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
