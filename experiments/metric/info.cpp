#include "experiments/metric/info.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "nn/files/number.hpp"

namespace heed {

template void Registry<MetricInfo>::add(MetricInfo);

namespace {

/// Whether a name fits a pattern, in which each * stands for one letter or more.
bool fits(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return name.empty();
  if (name.empty()) return false;
  if (pattern.front() != '*') return pattern.front() == name.front() && fits(pattern.substr(1), name.substr(1));
  return fits(pattern.substr(1), name.substr(1)) || fits(pattern, name.substr(1));
}

}  // namespace

std::string_view name(Better better) { return better == Better::higher ? "higher" : "lower"; }

MetricInfo const* find_metric(std::string_view name) {
  MetricInfo const* best = nullptr;
  auto const letters = [](MetricInfo const& info) {
    return info.name.size() - static_cast<std::size_t>(std::ranges::count(info.name, '*'));
  };
  for (auto const& info : Registry<MetricInfo>::all())
    if (fits(info.name, name) && (best == nullptr || letters(info) > letters(*best))) best = &info;
  return best;
}

Bounds bounds_of(std::string_view metric) {
  auto const* const info = find_metric(metric);
  return info == nullptr ? Bounds{} : info->bounds;
}

std::string with_unit(std::string const& metric, std::string const& unit) { return unit.empty() ? metric : metric + " (" + unit + ")"; }

std::string with_unit(std::string const& metric) {
  auto const* const info = find_metric(metric);
  return with_unit(metric, info == nullptr ? "" : info->unit);
}

// ---------------------------------------------------------------- names in parts

namespace {

std::string_view last_part(std::string_view text) { return text.substr(text.rfind('.') + 1); }

/// Cuts `.WORDnumber` off the end; −1 if the text ends in no such part.
Index cut_number(std::string_view& text, std::string_view word) {
  auto const part = last_part(text);
  if (!part.starts_with(word) || part.size() == text.size()) return -1;
  auto const number = parsed_number<Index>(part.substr(word.size()));
  if (!number || *number < 0 || std::to_string(*number) != part.substr(word.size())) return -1;
  text.remove_suffix(part.size() + 1);
  return *number;
}

/// Cuts `.layerL[.headH]` off the end.
bool cut_layer(std::string_view& text, MetricKey& key) {
  auto rest = text;
  Index const head = cut_number(rest, "head"), layer = cut_number(rest, "layer");
  if (layer < 0) return false;
  text = rest, key.layer = layer, key.head = head;
  return true;
}

}  // namespace

MetricKey MetricKey::of(std::string_view text) {
  MetricKey key;
  for (std::string_view const split : {"validation.ema", "validation", "probe", "time", "memory"}) {
    if (!text.starts_with(split) || !text.substr(split.size()).starts_with('.')) continue;
    key.split = split;
    text.remove_prefix(split.size() + 1);
    break;
  }
  key.length = cut_number(text, "length");
  if (!cut_layer(text, key)) {
    auto const statistic = last_part(text);
    auto rest = text.substr(0, text.size() - std::min(text.size(), statistic.size() + 1));
    bool const is_word = !statistic.empty() && statistic.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == statistic.npos;
    if (is_word && cut_layer(rest, key)) {
      key.statistic = statistic;
      text = rest;
    }
  }
  key.name = text;
  return key;
}

MetricKey MetricKey::of_probe(std::string name, std::size_t layer, Index head) {
  return {.split = "probe", .name = std::move(name), .layer = static_cast<Index>(layer), .head = head};
}

std::string MetricKey::text() const {
  std::string text = split.empty() ? name : split + "." + name;
  if (layer >= 0) text += fmt::format(".layer{}", layer);
  if (head >= 0) text += fmt::format(".head{}", head);
  if (!statistic.empty()) text += "." + statistic;
  if (length >= 0) text += fmt::format(".length{}", length);
  return text;
}

}  // namespace heed
