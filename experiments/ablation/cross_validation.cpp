#include "experiments/ablation/cross_validation.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <boost/math/distributions/students_t.hpp>
#include <fmt/format.h>

#include "nn/files/number.hpp"

namespace heed {

namespace {

/// The folds' values of one combination of the other keys.
using ByFold = std::map<Index, double>;

/// Mean and corrected interval of one value per fold; nothing for fewer than two.
std::optional<std::pair<double, Interval>> corrected(std::vector<double> const& values, Index folds) {
  if (values.size() < 2) return std::nullopt;
  auto const whole = estimate(values);
  auto const count = static_cast<double>(values.size());
  boost::math::students_t const t(count - 1);
  double const half = quantile(t, 0.975) * whole.deviation * std::sqrt(1 / count + 1 / static_cast<double>(folds - 1));
  return std::pair(whole.mean, Interval{whole.mean - half, whole.mean + half});
}

std::string shown(NumberFormat const& format, std::pair<double, Interval> const& of) {
  return fmt::format("{} {}", format(of.first), format.interval(of.second.low, of.second.high));
}

}  // namespace

std::vector<std::string> cross_validation_in_words(Ablation const& ablation, AblationResult const& result) {
  if (std::ranges::find(ablation.varied, "data.fold") == ablation.varied.end()) return {};
  std::vector<std::pair<std::string, ByFold>> groups;  // in the order of the arms
  std::string baseline;
  Index folds = 0;
  for (std::size_t i = 0; i < result.arms.size(); ++i) {
    auto const& arm = result.arms[i];
    auto const trial = trial_of(ablation, arm.name, ablation.arms[i].changes, ablation.seeds.front());
    Yaml const *const number = trial.document.root.find("data.fold"), *const of = trial.document.root.find("data.folds");
    auto const fold = number == nullptr ? std::nullopt : parsed_number<Index>(number->text);
    if (!fold || of == nullptr) return {};
    folds = parsed_number<Index>(of->text).value_or(0);
    std::string label;
    for (auto const& [key, value] : arm.keys)
      if (key != "data.fold") label += fmt::format("{}{}={}", label.empty() ? "" : ", ", last_word(key), value);
    if (arm.name == result.baseline) baseline = label;
    auto group = std::ranges::find(groups, label, &decltype(groups)::value_type::first);
    if (group == groups.end()) group = groups.insert(group, {label, {}});
    if (arm.has_finite_mean()) group->second[*fold] = arm.estimate->mean;
  }
  auto const format = result.format();
  auto const& of_baseline = std::ranges::find(groups, baseline, &decltype(groups)::value_type::first)->second;
  std::vector<std::string> sentences;
  for (auto const& [label, values] : groups) {
    std::vector<double> all, differences;
    for (auto const& [fold, value] : values) {
      all.push_back(value);
      if (auto const other = of_baseline.find(fold); label != baseline && other != of_baseline.end())
        differences.push_back(value - other->second);
    }
    auto const mean = corrected(all, folds), difference = corrected(differences, folds);
    std::string sentence = fmt::format("cross-validation, {}{} of {} folds: ", label.empty() ? "" : label + ", ", all.size(), folds);
    sentence += mean ? shown(format, *mean) : "no interval of fewer than two folds";
    if (difference) sentence += fmt::format("; minus {}: {}", baseline, shown(format, *difference));
    sentences.push_back(std::move(sentence));
  }
  sentences.emplace_back(
      "these intervals are over folds, which share training data: their variance is corrected for it (Nadeau & Bengio 2003); verdicts and "
      "p above compare single folds, over seeds");
  return sentences;
}

}  // namespace heed
