#include "experiments/ablation/summary.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "experiments/ablation/trials_read.hpp"
#include "experiments/metric/info.hpp"
#include "experiments/report/grid.hpp"
#include "experiments/run/result_file.hpp"
#include "nn/files/json.hpp"

namespace heed {

using Json = nlohmann::ordered_json;
using State = Job::State;

std::string Summary::tuned_words(std::size_t arm) const {
  std::vector<std::string> words;
  for (auto const& change : choice_of(ablation, tuned, arm)) words.push_back(last_word(change.key) + " " + emit_line(change.value));
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string Summary::name_with_tuned(std::size_t arm) const {
  auto const words = tuned_words(arm);
  return words.empty() ? arms[arm].name : fmt::format("{} ({})", arms[arm].name, words);
}

std::string Summary::unit() const {
  auto const* const info = find_metric(ablation.settings.metric);
  return info == nullptr ? "" : info->unit;
}

std::string Summary::at() const {
  bool const kept = ablation.settings.at == "last" &&
                    std::ranges::any_of(jobs, [](Job const& job) { return job.experiment.settings.train.keeps_best(); });
  return kept ? "kept" : ablation.settings.at;
}

std::int64_t Summary::steps() const { return (jobs.empty() ? tuned.jobs : jobs).front().experiment.settings.train.steps; }

namespace {

/// "a, b and c".
std::string listed(std::vector<std::string> const& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) text += (i == 0 ? "" : i + 1 < words.size() ? ", " : " and ") + words[i];
  return text;
}

/// What must be equal for numbers to be compared: revision, matrix library and processor of every trial. A warning for each that is not.
std::vector<std::string> different_environments(std::vector<Job> const& jobs) {
  std::map<std::string, std::map<std::string, std::vector<std::string>>> found;
  for (Job const& job : jobs) {
    if (job.state != State::done) continue;
    auto const environment = read_json(job.folder() / "summary.json").value("environment", Json::object());
    for (auto const& [key, value] : environment.items()) {
      if (key == "revision" || key == "blas" || key == "processor")
        found[key][value.is_string() ? value.get<std::string>() : json_text(value)].push_back(job.experiment.settings.name);
    }
  }
  std::vector<std::string> warnings;
  for (auto const& [key, values] : found) {
    if (values.size() < 2) continue;
    std::vector<std::string> parts;
    for (auto const& [value, runs] : values) parts.push_back(fmt::format("{} ({} runs, {} …)", value, runs.size(), runs.front()));
    warnings.push_back(
        fmt::format("the runs were made with different {}: {}", key == "blas" ? "matrix libraries" : key + "s", fmt::join(parts, "; ")));
  }
  return warnings;
}

/// That examples were cut, in the words of the first trial that says so: other seeds draw other examples, and would each say another
/// number.
std::vector<std::string> cut_examples(std::vector<Job> const& jobs) {
  std::size_t count = 0;
  std::string first;
  for (Job const& job : jobs) {
    if (job.state != State::done) continue;
    auto const cut = read_json(job.folder() / "summary.json").value("cut", "");
    if (cut.empty()) continue;
    if (count++ == 0) first = fmt::format("in {}, {}", job.experiment.settings.name, cut);
  }
  if (count == 0) return {};
  return {fmt::format("{} of {} runs cut examples that are too long: {}", count, jobs.size(), first)};
}

/// Why the trials cannot be compared, if they did not all read the same.
std::optional<std::string> warning_of_mixture(Summary const& summary) {
  TrialsRead read;
  for (auto const* const jobs : {&summary.tuned.jobs, &summary.jobs})
    for (Job const& job : *jobs)
      if (job.state == State::done) read.add(job.experiment);
  auto const differences = read.differences();
  if (differences.empty()) return std::nullopt;
  return fmt::format("the trials have not all read the same, and are not compared: {} (--fresh begins anew)", differences);
}

/// What a value means that was chosen on the data which it is measured on.
void warn_of_selection(Summary& summary) {
  if (summary.at() != "kept") return;
  auto const& train = std::ranges::find_if(summary.jobs, [](Job const& job) {
                        return job.experiment.settings.train.keeps_best();
                      })->experiment.settings.train;
  summary.warnings.push_back(
      fmt::format("{} is that of the weights kept, of each trial's best evaluation by {} (train.keep: best): chosen on the data that it is "
                  "measured on, it is optimistic; a test split is not",
                  summary.ablation.settings.metric, train.select.metric));
}

void say_stopped(Summary& summary) {
  std::vector<std::int64_t> stopped;
  std::size_t trials = 0;
  for (auto const& arm : summary.arms) {
    std::ranges::copy(arm.stopped, std::back_inserter(stopped));
    trials += arm.jobs.size();
  }
  if (stopped.empty()) return;
  auto const [first, last] = std::ranges::minmax(stopped);
  summary.sentences.push_back(fmt::format("{} of {} trials stopped early (train.stop), after {} steps", stopped.size(), trials,
                                          first == last ? fmt::format("{}", first) : fmt::format("{} to {}", first, last)));
}

void warn_of_few_seeds(Summary& summary) {
  std::size_t const seeds = summary.ablation.seeds.size();
  if (smallest_p(seeds) <= summary.question.significance()) return;
  summary.warnings.push_back(
      fmt::format("{} paired seeds cannot show a difference at p ≤ 0.05: the smallest p that they can reach is {:.3g}; "
                  "six or more can",
                  seeds, smallest_p(seeds)));
}

void warn_of_diverged(Summary& summary) {
  for (auto const& arm : summary.arms) {
    if (arm.diverged.empty()) continue;
    std::vector<std::string> seeds;
    for (auto const seed : arm.diverged) seeds.push_back(fmt::format("{}", seed));
    summary.warnings.push_back(fmt::format("{}: seed{} {} diverged, {} is not finite there: that counts as worse than any number", arm.name,
                                           seeds.size() == 1 ? "" : "s", listed(seeds), summary.ablation.settings.metric));
  }
}

void warn_of_open_effects(Summary& summary) {
  auto const open = std::ranges::count_if(summary.effects, [](Effect const& effect) { return std::isnan(effect.comparison.mean); });
  if (open > 0)
    summary.warnings.push_back(
        fmt::format("{} of {} effects of keys cannot be computed: arms diverged on both sides of them", open, summary.effects.size()));
}

void warn_of_tuning(Summary& summary) {
  auto const& chosen = summary.tuned.chosen;
  for (std::size_t i = 0; i < chosen.size(); ++i)
    if (!chosen[i])
      summary.warnings.push_back(fmt::format("{}: no point of the tuning grid trains it to its end with a finite {}: it is not compared",
                                             summary.arms[i].name, summary.ablation.settings.metric));
  std::ranges::copy(choices_on_edge(summary.ablation, summary.tuned), std::back_inserter(summary.warnings));
}

void add_failures(Summary& summary) {
  for (Job const& job : summary.tuned.jobs)
    if (job.state == State::failed) summary.failures.push_back({summary.tuned.names.at(job.arm) + " (tuning)", &job});
  for (Job const& job : summary.jobs)
    if (job.state == State::failed) summary.failures.push_back({summary.arms.at(job.arm).name, &job});
}

void estimate_means(Summary& summary) {
  std::vector<double> found;
  for (auto const& arm : summary.arms) {
    std::vector<double> values;
    for (auto const& [seed, value] : arm.values) values.push_back(value);
    auto& mean = summary.means.emplace_back();
    if (values.empty()) continue;
    mean = estimate(values, summary.question.confidence, summary.question.bounds);
    found.push_back(mean->mean);
  }
  summary.format = NumberFormat::of(found);
}

void compare_with_baseline(Summary& summary) {
  std::size_t const baseline = summary.ablation.baseline;
  std::vector<std::size_t> others;
  std::vector<BySeed> values;
  for (std::size_t i = 0; i < summary.arms.size(); ++i) {
    if (i == baseline) continue;
    others.push_back(i);
    values.push_back(summary.arms[i].values);
  }
  auto const found = compare(values, summary.arms[baseline].values, summary.question);
  for (std::size_t k = 0; k < others.size(); ++k)
    if (found[k].seeds > 0) summary.comparisons[others[k]] = found[k];
}

/// Equal, but for the order of their sums.
bool same(double a, double b) {
  return a == b || (std::isfinite(a) && std::isfinite(b) && std::abs(a - b) <= 1e-12 * std::max(std::abs(a), std::abs(b)));
}

/// The arm or the arms with the best mean, in words; nothing if no arm has one.
std::optional<std::string> best_mean(Summary const& summary) {
  bool const higher = summary.question.better == Better::higher;
  auto const ahead = [&](double a, double b) { return higher ? a > b : a < b; };
  std::vector<std::size_t> best;
  for (std::size_t i = 0; i < summary.arms.size(); ++i) {
    if (!summary.means[i]) continue;
    double const mean = summary.means[i]->mean, before = best.empty() ? mean : summary.means[best.front()]->mean;
    if (!same(mean, before) && ahead(mean, before)) best.clear();
    if (best.empty() || same(mean, before)) best.push_back(i);
  }
  if (best.empty()) return std::nullopt;
  std::vector<std::string> names;
  for (auto const i : best) names.push_back(summary.name_with_tuned(i));
  auto const& mean = *summary.means[best.front()];
  auto const word = higher ? "highest" : "lowest";
  if (best.size() > 1)
    return fmt::format("{} mean, the same of {} arms: {}, {}", word, best.size(), listed(names), summary.format(mean.mean));
  return fmt::format("{} mean: {}, {}{}", word, names.front(), summary.format(mean.mean),
                     mean.interval ? " " + summary.format.interval(mean.interval->low, mean.interval->high) : "");
}

/// With which keys the metric rises or falls; of a grid: which arm is ahead, and what the keys do by themselves and together.
void find_effects(Summary& summary) {
  std::vector<Keys> keys;
  std::vector<BySeed> values;
  for (auto const& arm : summary.arms) {
    keys.emplace_back();
    for (auto const& change : arm.changes) keys.back().emplace_back(change.key, emit_line(change.value));
    values.push_back(arm.values);
  }
  summary.trends = trends_of(keys, values, summary.ablation.settings.metric);
  for (Trend const& trend : summary.trends) summary.sentences.push_back(trend.sentence);
  auto const grid = grid_of(keys);
  if (!grid) return;
  auto const best = best_mean(summary);
  if (!best) return;
  summary.sentences.push_back(*best);
  summary.effects = effects_of(*grid, values, summary.ablation.baseline, summary.unit(), summary.question);
  for (auto const& effect : summary.effects)
    if (!effect.sentence.empty()) summary.sentences.push_back(effect.sentence);
  auto const computed = [](Effect const& effect) { return effect.interaction && !std::isnan(effect.comparison.mean); };
  auto const clear = [](Effect const& effect) { return effect.interaction && !effect.sentence.empty(); };
  if (std::ranges::any_of(summary.effects, computed) && std::ranges::none_of(summary.effects, clear))
    summary.sentences.emplace_back("no interaction is clear");
}

void say_comparisons(Summary& summary) {
  for (std::size_t i = 0; i < summary.arms.size(); ++i) {
    if (auto const& comparison = summary.comparisons[i])
      summary.sentences.push_back(sentence(summary.name_with_tuned(i), summary.name_with_tuned(summary.ablation.baseline), summary.unit(),
                                           *comparison, summary.question));
  }
  for (auto const& published : summary.ablation.published) {
    for (std::size_t i = 0; i < summary.arms.size(); ++i) {
      if (!summary.means[i]) continue;
      if (auto said = beside_published(published, summary.name_with_tuned(i), *summary.means[i], summary.steps()))
        summary.sentences.push_back(*said);
    }
  }
}

}  // namespace

Summary summarise(Ablation const& ablation, std::vector<Job> const& jobs, TuningResult const& tuned) {
  Summary summary{.ablation = ablation, .jobs = jobs, .tuned = tuned};
  auto const& settings = ablation.settings;
  summary.question = {.better = settings.higher_is_better() ? Better::higher : Better::lower,
                      .margin = settings.margin.value_or(0),
                      .bounds = bounds_of(settings.metric)};
  summary.arms = gather(ablation, jobs);
  estimate_means(summary);
  summary.comparisons.resize(summary.arms.size());
  if (auto const mixed = warning_of_mixture(summary)) {
    summary.warnings.push_back(*mixed);
  } else {
    compare_with_baseline(summary);
    find_effects(summary);
    say_comparisons(summary);
  }
  add_failures(summary);
  std::ranges::copy(different_environments(jobs), std::back_inserter(summary.warnings));
  std::ranges::copy(cut_examples(jobs), std::back_inserter(summary.warnings));
  say_stopped(summary);
  warn_of_selection(summary);
  warn_of_few_seeds(summary);
  warn_of_diverged(summary);
  warn_of_open_effects(summary);
  warn_of_tuning(summary);
  return summary;
}

}  // namespace heed
