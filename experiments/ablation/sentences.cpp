// What a summary says of the best arm, of folds together, of who has a convolution and who was stopped.

#include <algorithm>
#include <cmath>

#include <boost/math/distributions/students_t.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/ablation/results.hpp"
#include "experiments/config/nearest.hpp"
#include "nn/files/number.hpp"
#include "nn/models/blocks.hpp"

namespace heed {

namespace {

/// Mean and corrected interval of one value per fold; nothing for fewer than two.
std::optional<Estimate> corrected(std::vector<double> const& values, Index folds) {
  if (values.size() < 2) return std::nullopt;
  auto whole = estimate(values);
  auto const count = static_cast<double>(values.size());
  boost::math::students_t const t(count - 1);
  double const half = quantile(t, 0.975) * whole.deviation * std::sqrt(1 / count + 1 / static_cast<double>(folds - 1));
  whole.interval = Interval{whole.mean - half, whole.mean + half};
  return whole;
}

/// Equal, but for the order of their sums.
bool same(double a, double b) {
  return a == b || (std::isfinite(a) && std::isfinite(b) && std::abs(a - b) <= 1e-12 * std::max(std::abs(a), std::abs(b)));
}

}  // namespace

std::vector<double> paired_differences(BySeed const& values, BySeed const& others) {
  std::vector<double> differences;
  for (auto const& [seed, value] : values)
    if (auto const other = others.find(seed); other != others.end()) differences.push_back(value - other->second);
  return differences;
}

std::optional<std::string> best_mean(AblationResult const& result) {
  bool const higher = result.better == "higher";
  auto const ahead = [&](double a, double b) { return higher ? a > b : a < b; };
  std::vector<ArmResult const*> best;
  for (auto const& arm : result.arms) {
    if (!arm.estimate) continue;
    double const mean = arm.estimate->mean, before = best.empty() ? mean : best.front()->estimate->mean;
    if (!same(mean, before) && ahead(mean, before)) best.clear();
    if (best.empty() || same(mean, before)) best.push_back(&arm);
  }
  if (best.empty()) return std::nullopt;
  auto const names = mapped(best, &ArmResult::name_with_tuned);
  auto const& estimate = *best.front()->estimate;
  auto const format = result.format();
  auto const word = higher ? "highest" : "lowest";
  auto const unit = result.unit.empty() ? "" : " " + result.unit;
  if (best.size() > 1)
    return fmt::format("{} mean, the same of {} arms: {}, {}{}", word, best.size(), listed(names), format(estimate.mean), unit);
  return fmt::format("{} mean: {}, {}{}", word, names.front(), shown_mean(format, estimate), unit);
}

std::vector<std::string> cross_validation_in_words(Ablation const& ablation, AblationResult const& result) {
  if (std::ranges::find(ablation.varied, "data.fold") == ablation.varied.end()) return {};
  std::vector<std::pair<std::string, BySeed>> groups;  // by the other keys, in the order of the arms: values by fold
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
    auto const mean = corrected(mapped(values, &BySeed::value_type::second), folds);
    auto const difference = label == baseline ? std::nullopt : corrected(paired_differences(values, of_baseline), folds);
    std::string sentence = fmt::format("cross-validation, {}{} of {} folds: ", label.empty() ? "" : label + ", ", values.size(), folds);
    sentence += mean ? shown_mean(format, *mean) : "no interval of fewer than two folds";
    if (difference) sentence += fmt::format("; minus {}: {}", baseline, shown_mean(format, *difference));
    sentences.push_back(std::move(sentence));
  }
  sentences.emplace_back(
      "these intervals are over folds, which share training data: their variance is corrected for it (Nadeau & Bengio 2003); verdicts and "
      "p above compare single folds, over seeds");
  return sentences;
}

std::optional<std::string> convolutions_in_words(Ablation const& ablation) {
  std::vector<std::string> with, without;
  bool matters = false;
  for (auto const& arm : ablation.arms) {
    auto const trial = trial_of(ablation, arm.name, arm.changes, ablation.seeds.front());
    auto const* const stack = dynamic_cast<StackSettings const*>(trial.settings.model.settings.get());
    if (stack == nullptr) return std::nullopt;
    Index convolved = 0;
    for (Index i = 0; i < stack->layers; ++i) {
      auto const attention = stack->of_layer(i).attention;
      if (attention.convolution) ++convolved;
      matters = matters || attention.convolution || attention.is_linear();
    }
    bool const some = convolved > 0 && convolved < stack->layers;
    (convolved > 0 ? with : without).push_back(arm.name + (some ? fmt::format(" (in {} of {} layers)", convolved, stack->layers) : ""));
  }
  if (!matters) return std::nullopt;
  bool const all = without.empty() && std::ranges::equal(with, ablation.arms, {}, {}, &Arm::name);
  if (all) return "every arm has a short convolution on queries, keys and values";
  if (with.empty()) return "no arm has a short convolution";
  return fmt::format("a short convolution on queries, keys and values: with it {}; without it {}", fmt::join(with, ", "),
                     without.empty() ? "none" : fmt::format("{}", fmt::join(without, ", ")));
}

}  // namespace heed
