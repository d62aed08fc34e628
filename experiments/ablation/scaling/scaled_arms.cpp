#include "experiments/ablation/scaling/scaled_arms.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "experiments/config/yaml.hpp"
#include "experiments/metric/info.hpp"
#include "experiments/report/traces.hpp"
#include "nn/attention/steps.hpp"
#include "nn/files/number.hpp"

namespace heed {

namespace {

std::string text(Yaml const& root, char const* path) {
  auto const* const value = root.find(path);
  return value == nullptr ? "" : value->text;
}

std::optional<double> number_in(Yaml const& root, char const* path) { return parsed_number<double>(text(root, path)); }

/// An arm from its resolved configuration; nothing if its scores have no scale.
std::optional<ScaledArm> read(ArmResult const& arm, Yaml const& root) {
  auto const width = number_in(root, "model.width"), heads = number_in(root, "model.heads"), context = number_in(root, "model.context");
  auto const scale = text(root, "model.attention.scale");
  if (text(root, "model.attention.score") != "scaled_dot" || !text(root, "model.attention.linear").empty() || scale.empty() || !width ||
      !heads || !context)
    return std::nullopt;
  double const d_k = number_in(root, "model.key_width").value_or(*width / *heads);
  return ScaledArm{&arm, scale, d_k, fixed_scale(scale, d_k), number_in(root, "model.query_key_spread").value_or(1), *context};
}

}  // namespace

std::string scale_text(std::string const& scale) {
  if (scale == "none") return "no scale";
  if (scale == "rsqrt") return "1/√d_k";
  if (scale == "inverse") return "1/d_k";
  if (scale.starts_with(power_prefix)) return "d_k^−" + scale.substr(power_prefix.size());
  return "× " + scale;
}

std::optional<double> ScaledArm::power() const {
  if (!factor || !(*factor > 0) || d_k == 1) return std::nullopt;
  double const power = -std::log(*factor) / std::log(d_k);
  return std::round(power * 1e9) / 1e9 + 0.0;
}

std::vector<ScaledArm> scaled_arms(Material const& material) {
  std::vector<ScaledArm> found;
  for (auto const& arm : material.arms)
    if (auto read_arm = read(arm, configuration_of(material, arm))) found.push_back(std::move(*read_arm));
  return found;
}

std::vector<double> widths_of(std::vector<ScaledArm> const& arms) {
  std::set<double> widths;
  for (auto const& arm : arms) widths.insert(arm.d_k);
  return {widths.begin(), widths.end()};
}

std::vector<std::string> scales_of(std::vector<ScaledArm> const& arms) {
  std::vector<std::string> scales;
  for (auto const& arm : arms)
    if (std::ranges::find(scales, arm.scale) == scales.end()) scales.push_back(arm.scale);
  return scales;
}

std::map<std::string, std::map<double, double>> head_series(ArmResult const& arm, std::string const& probe) {
  std::map<std::string, std::vector<SeriesValues>> heads;
  for (auto const& [seed, history] : arm.histories) {
    for (auto const& [name, series] : history) {
      auto const key = MetricKey::of(name);
      if (key.is_probe() && key.name == probe && key.head >= 0 && key.statistic.empty())
        heads[fmt::format("layer{}.head{}", key.layer, key.head)].push_back(series);
    }
  }
  std::map<std::string, std::map<double, double>> result;
  for (auto const& [head, seeds] : heads)
    for (auto const& point : curve_of(seeds))
      if (std::isfinite(point.y)) result[head].emplace(point.x, point.y);
  return result;
}

}  // namespace heed
