#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "experiments/ablation/check_arms.hpp"
#include "experiments/ablation/results.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/folder/result_file.hpp"
#include "experiments/metric/evidence.hpp"
#include "experiments/metric/info.hpp"
#include "nn/files/json.hpp"

namespace heed {

using Json = nlohmann::ordered_json;
using State = Job::State;

namespace {

struct Done {
  Job const* job;
  Json summary;
  std::string const& name() const { return job->experiment.settings.name; }
};

struct Trials {
  Ablation const& ablation;
  std::vector<Job> const& jobs;
  TuningResult const& tuned;
  std::vector<Done> done{};  ///< of `jobs`
  Question question{};
  std::vector<Loser> losers{};

  /// The first trial that keeps its best weights; null if none does.
  Job const* keeps_best() const {
    auto const found = std::ranges::find_if(jobs, [](Job const& job) { return job.experiment.settings.train.keeps_best(); });
    return found == jobs.end() ? nullptr : &*found;
  }
};

std::string folder_in(Ablation const& ablation, Job const& job) { return job.folder().lexically_relative(ablation.folder()).string(); }

// ---------------------------------------------------------------- what was trained, and what came of it

/// How many trials have ended; those of an arm that no point of the grid trains count as well, for they are not coming.
std::size_t ended(Trials const& trials) {
  auto const in = [](std::vector<Job> const& jobs) { return static_cast<std::size_t>(std::ranges::count_if(jobs, &Job::has_ended)); };
  std::size_t given_up = 0;
  for (std::size_t arm = 0; arm < trials.tuned.chosen.size(); ++arm) given_up += is_given_up(trials.ablation, trials.tuned, arm) ? 1 : 0;
  return in(trials.tuned.jobs) + in(trials.jobs) + given_up * trials.ablation.seeds.size();
}

void add_failures(Trials const& trials, AblationResult& result) {
  auto const add = [&](std::string const& arm, Job const& job) {
    if (job.state == State::failed)
      result.failures.push_back({arm, job.seed, job.experiment.settings.name, job.failure.message, job.failure.log});
  };
  for (Job const& job : trials.tuned.jobs) add(trials.tuned.names.at(job.arm) + " (tuning)", job);
  for (Job const& job : trials.jobs) add(result.arms.at(job.arm).name, job);
}

void add_values(Trials const& trials, AblationResult& result) {
  for (Job const& job : trials.jobs) {
    auto& arm = result.arms.at(job.arm);
    auto const value = compared_value(job, trials.ablation.settings);
    if (value) arm.values[job.seed] = *value;
    if (value && std::isinf(*value)) arm.diverged.push_back(job.seed);
    if (!job.is_settled()) result.missing.emplace_back(arm.name, job.seed);
  }
}

/// The mean of a number over an arm's trials whose summaries have it, finite.
std::optional<double> mean_cost(Trials const& trials, std::size_t arm, char const* key) {
  double sum = 0, count = 0;
  for (Done const& each : trials.done) {
    auto const value = each.job->arm == arm ? real_at(each.summary, key) : std::nullopt;
    if (value && std::isfinite(*value)) sum += *value, ++count;
  }
  return count == 0 ? std::nullopt : std::optional(sum / count);
}

void add_costs(Trials const& trials, AblationResult& result) {
  for (Done const& each : trials.done) {
    auto& arm = result.arms.at(each.job->arm);
    arm.folders.push_back(folder_in(trials.ablation, *each.job));
    if (auto const count = each.summary.find("parameters"); count != each.summary.end() && count->is_number_integer())
      arm.parameters = *count;
  }
  for (std::size_t i = 0; i < result.arms.size(); ++i) {
    result.arms[i].seconds = mean_cost(trials, i, "time.seconds");
    result.arms[i].tokens_per_second = mean_cost(trials, i, "time.tokens_per_second");
    result.arms[i].memory = mean_cost(trials, i, "memory.peak");
  }
}

/// All but what statistics say.
AblationResult collected(Trials const& trials) {
  auto const& ablation = trials.ablation;
  auto const& settings = ablation.settings;
  AblationResult result;
  result.name = settings.ablation;
  result.metric = settings.metric;
  result.better = settings.higher_is_better() ? "higher" : "lower";
  result.at = settings.at == "last" && trials.keeps_best() != nullptr ? "kept" : settings.at;
  if (auto const* const info = find_metric(settings.metric)) result.unit = info->unit;
  result.margin = trials.question.margin;
  result.seeds = ablation.seeds;
  result.baseline = ablation.arms[ablation.baseline].name;
  result.varied = ablation.varied;
  result.steps = (trials.jobs.empty() ? trials.tuned.jobs : trials.jobs).front().experiment.settings.train.steps;
  for (std::size_t i = 0; i < ablation.arms.size(); ++i) {
    auto& arm = result.arms.emplace_back();
    arm.name = ablation.arms[i].name;
    arm.keys = keys_of(ablation.arms[i].changes);
    arm.tuned = keys_of(tuned_changes(ablation, trials.tuned, i));
  }
  add_values(trials, result);
  add_costs(trials, result);
  add_failures(trials, result);
  result.trials_done = ended(trials);
  result.trials_of = ablation.trials_in_shard() - static_cast<std::size_t>(std::ranges::count(trials.jobs, State::spared, &Job::state));
  std::erase_if(result.seeds, [&](Index seed) {
    auto const is_spared = [&](Job const& job) { return job.seed != seed || job.state == State::spared; };
    return !trials.jobs.empty() && std::ranges::all_of(trials.jobs, is_spared);
  });
  for (auto const* jobs : {&trials.tuned.jobs, &trials.jobs})
    for (Job const& job : *jobs)
      if (job.state != State::spared) result.trials.push_back(folder_in(ablation, job));
  result.configuration = ablation.resolved;
  if (ablation.tuning) result.tuning = tuning_scores(ablation, trials.tuned);
  result.published = ablation.published;
  return result;
}

// ---------------------------------------------------------------- warnings

/// "seed 4", "seeds 1, 2 and 3".
std::string named_seeds(std::vector<Index> const& seeds) {
  auto const words = mapped(seeds, [](Index seed) { return fmt::format("{}", seed); });
  return fmt::format("seed{} {}", seeds.size() == 1 ? "" : "s", listed(words));
}

/// Adds a warning for each of revision, matrix library and processor that is not the same in every trial: such numbers cannot be compared.
void warn_of_environments(Trials const& trials, AblationResult& result) {
  std::map<std::string, std::map<std::string, std::vector<std::string>>> found;
  for (Done const& each : trials.done) {
    auto const environment = each.summary.value("environment", Json::object());
    for (auto const& [key, value] : environment.items())
      if (key == "revision" || key == "blas" || key == "processor")
        found[key][value.is_string() ? value.get<std::string>() : json_text(value)].push_back(each.name());
  }
  for (auto const& [key, values] : found) {
    if (values.size() < 2) continue;
    std::vector<std::string> parts;
    for (auto const& [value, runs] : values) parts.push_back(fmt::format("{} ({} runs, {} …)", value, runs.size(), runs.front()));
    result.warnings.push_back(
        fmt::format("the runs were made with different {}: {}", key == "blas" ? "matrix libraries" : key + "s", fmt::join(parts, "; ")));
  }
}

/// That examples were cut or losses grew (a summary's `key`), in the words of the first trial that says so: others have other numbers.
void warn_of(std::string const& key, std::string const& what, Trials const& trials, AblationResult& result) {
  std::size_t count = 0;
  std::string first;
  for (Done const& each : trials.done) {
    auto const text = each.summary.value(key, "");
    if (!text.empty() && count++ == 0) first = fmt::format("in {}, {}", each.name(), text);
  }
  if (count > 0) result.warnings.push_back(fmt::format("{} of {} runs {}: {}", count, trials.jobs.size(), what, first));
}

/// That arms whose contexts cut different numbers of answers off have losses over different examples.
void warn_of_lost_answers(Trials const& trials, AblationResult& result) {
  std::map<std::size_t, double> lost;  // of an arm's first trial
  for (Done const& each : trials.done) lost.emplace(each.job->arm, each.summary.value("validation.lost_answers", 0.0));
  if (std::ranges::all_of(lost, [&](auto const& arm) { return arm.second == lost.begin()->second; })) return;
  auto const counts = mapped(lost, [&](auto const& arm) { return fmt::format("{}: {}", result.arms[arm.first].name, arm.second); });
  result.warnings.push_back(fmt::format(
      "model.context cuts different numbers of held-out answers off ({}): losses are means over different examples and cannot be "
      "compared; accuracy, span_exact and span_f1 count such answers as wrong",
      fmt::join(counts, ", ")));
}

/// Why the trials cannot be compared, if they did not all read the same.
std::optional<std::string> warning_of_mixture(Trials const& trials) {
  TrialsRead read;
  for (auto const* const jobs : {&trials.tuned.jobs, &trials.jobs})
    for (Job const& job : *jobs)
      if (job.state == State::done) read.add(job.experiment, files_read_in(job.folder()), job.experiment.settings.name);
  auto const differences = read.differences();
  if (differences.empty()) return std::nullopt;
  return fmt::format("the trials have read different contents of a file, and are not compared: {} (--fresh begins anew)", differences);
}

void warn_of_shard(Trials const& trials, AblationResult& result) {
  auto const& shard = trials.ablation.shard;
  if (shard.count == 1) return;
  result.warnings.push_back(
      fmt::format("these are the {} trials of shard {} of {} (from 0): heed report on the folders of all shards joins them",
                  result.trials_of, shard.index, shard.count));
}

/// Values that were selected on the data on which they are measured; fewer seeds than can show a difference.
void warn_of_plan(Trials const& trials, AblationResult& result) {
  if (result.at == "kept")
    result.warnings.push_back(
        fmt::format("{} is from each trial's best evaluation by {} (train.keep: best): selected on the data on which it is measured, it is "
                    "optimistic; a test split is not",
                    result.metric, trials.keeps_best()->experiment.settings.train.select.metric));
  std::size_t const seeds = trials.ablation.seeds.size();
  bool const by_evidence = trials.ablation.settings.by_evidence();
  auto const enough = seeds_for_verdict(by_evidence, result.arms.size() - 1, trials.question.significance());
  if (seeds < enough)
    result.warnings.push_back(fmt::format(
        "{} paired seeds cannot show a difference at p ≤ 0.05{}; {} or more can", seeds,
        by_evidence ? " by evidence" : fmt::format(": the smallest p that they can reach is {:.3g}", smallest_p(seeds)), enough));
}

/// The seeds on which an arm and the baseline both diverged, which are no pair.
void warn_of_no_pairs(AblationResult& result) {
  auto const* const baseline = result.baseline_arm();
  if (baseline == nullptr) return;
  for (auto const& arm : result.arms) {
    std::vector<Index> both;
    for (auto const seed : arm.diverged)
      if (&arm != baseline && std::ranges::count(baseline->diverged, seed) > 0) both.push_back(seed);
    if (!both.empty())
      result.warnings.push_back(fmt::format("{} and {} both diverged with {}: no pair, left out of their comparison", arm.name,
                                            baseline->name, named_seeds(both)));
  }
}

void warn_of_diverged(AblationResult& result) {
  for (auto const& arm : result.arms)
    if (!arm.diverged.empty())
      result.warnings.push_back(fmt::format("{}: {} diverged: {} is not finite, which counts as worse than any number", arm.name,
                                            named_seeds(arm.diverged), result.metric));
}

void warn_of_open_effects(AblationResult& result) {
  auto const open = std::ranges::count_if(result.effects, [](Effect const& effect) { return std::isnan(effect.comparison.mean); });
  if (open > 0)
    result.warnings.push_back(
        fmt::format("{} of {} effects of keys cannot be computed: arms diverged on both sides of them", open, result.effects.size()));
}

void warn_of_tuning(Trials const& trials, AblationResult& result) {
  auto const& chosen = trials.tuned.chosen;
  for (std::size_t i = 0; i < chosen.size(); ++i)
    if (is_given_up(trials.ablation, trials.tuned, i))
      result.warnings.push_back(fmt::format("{}: at no point of the tuning grid does training end with a finite {}: it is not compared",
                                            result.arms[i].name, result.metric));
  std::ranges::copy(choices_on_edge(trials.ablation, trials.tuned), std::back_inserter(result.warnings));
}

// ---------------------------------------------------------------- statistics, and what they say

void say_stopped(Trials const& trials, AblationResult& result) {
  std::vector<Index> stopped;
  for (Done const& each : trials.done)
    if (auto const at = each.summary.find("stopped_at"); at != each.summary.end() && at->is_number_integer()) stopped.push_back(*at);
  if (stopped.empty()) return;
  auto const [first, last] = std::ranges::minmax(stopped);
  result.sentences.push_back(fmt::format("{} of {} trials stopped early (train.stop), after {} steps", stopped.size(), trials.done.size(),
                                         first == last ? fmt::format("{}", first) : fmt::format("{} to {}", first, last)));
}

/// With which keys the metric rises or falls; of a grid: which arm is ahead, and what the keys do by themselves and together.
void find_effects(Trials const& trials, AblationResult& result) {
  auto const keys = mapped(result.arms, &ArmResult::keys);
  auto const values = mapped(result.arms, &ArmResult::values);
  result.trends = trends_of(keys, values, result.metric);
  for (Trend const& trend : result.trends) result.sentences.push_back(trend.sentence);
  auto const grid = grid_of(keys);
  if (!grid) return;
  auto const best = best_mean(result);
  if (!best) return;
  result.sentences.push_back(*best);
  result.effects = effects_of(*grid, values, trials.ablation.baseline, result.unit, trials.question);
  for (auto const& effect : result.effects)
    if (!effect.sentence.empty()) result.sentences.push_back(effect.sentence);
  auto const computed = [](Effect const& effect) { return effect.interaction && !std::isnan(effect.comparison.mean); };
  auto const clear = [](Effect const& effect) { return effect.interaction && !effect.sentence.empty(); };
  if (std::ranges::any_of(result.effects, computed) && std::ranges::none_of(result.effects, clear))
    result.sentences.emplace_back("no interaction is clear");
}

/// How many seeds would find differences as large as those that were measured, for arms that are unclear.
void say_seeds_needed(Trials const& trials, AblationResult& result) {
  constexpr std::size_t max_seeds = 1000;
  std::vector<std::string> needed;
  for (auto const& arm : result.arms) {
    if (!arm.difference || arm.difference->e || arm.difference->verdict != Verdict::unclear) continue;
    auto const& c = *arm.difference;
    if (!std::isfinite(c.mean) || !(c.deviation > 0) || !std::isfinite(c.deviation)) continue;
    auto const seeds = seeds_that_detect(std::abs(c.mean) / c.deviation, c.arms, trials.question.significance());
    if (seeds > c.seeds)
      needed.push_back(
          fmt::format("{} ({})", seeds > max_seeds ? fmt::format("more than {}", max_seeds) : fmt::format("{}", seeds), arm.name));
  }
  if (!needed.empty())
    result.sentences.push_back(fmt::format("unclear: seeds that would find a difference as large as the measured one with 80 % power: {}",
                                           fmt::join(needed, ", ")));
}

void say_comparisons(Trials const& trials, AblationResult& result) {
  auto const baseline = result.arms[trials.ablation.baseline].name_with_tuned();
  for (auto const& arm : result.arms)
    if (arm.difference)
      result.sentences.push_back(sentence(arm.name_with_tuned(), baseline, result.unit, *arm.difference, trials.question));
  say_seeds_needed(trials, result);
  for (auto const& published : result.published)
    for (auto const& arm : result.arms)
      if (arm.estimate)
        if (auto sentence = beside_published(published, arm.name_with_tuned(), *arm.estimate, result.steps))
          result.sentences.push_back(*sentence);
}

}  // namespace

void compare_with_baseline(AblationResult& result, Question const& question, bool by_evidence) {
  std::vector<ArmResult*> others;
  for (auto& arm : result.arms)
    if (arm.name != result.baseline) others.push_back(&arm);
  auto const evidence_of = [&](ArmResult const* arm) { return compare_by_evidence(result.differences(*arm), question, others.size()); };
  auto const found =
      by_evidence ? mapped(others, evidence_of) : compare(mapped(others, &ArmResult::values), result.baseline_arm()->values, question);
  for (std::size_t k = 0; k < others.size(); ++k)
    if (found[k].seeds > 0) others[k]->difference = found[k];
}

AblationResult summarise(Ablation const& ablation, std::vector<Job> jobs, TuningResult const& tuned) {
  Trials trials{.ablation = ablation, .jobs = jobs, .tuned = tuned, .question = ablation.settings.question()};
  constexpr Index all = std::numeric_limits<Index>::max();  // seeds up to a verdict are no plan
  if (ablation.settings.by_evidence()) trials.losers = give_out_seeds(ablation, jobs, ablation.settings.until_verdict ? 1 : all).losers;
  for (Job const& job : jobs)
    if (job.state == State::done) trials.done.push_back({&job, read_json(job.folder() / "summary.json")});
  auto result = collected(trials);
  warn_of_shard(trials, result);
  for (auto& arm : result.arms) {
    auto const values = mapped(arm.values, &BySeed::value_type::second);
    if (!values.empty()) arm.estimate = estimate(values, trials.question.confidence, trials.question.bounds);
  }
  if (auto const mixed = warning_of_mixture(trials)) {
    result.warnings.push_back(*mixed);
  } else {
    compare_with_baseline(result, trials.question, ablation.settings.by_evidence());
    if (!ablation.settings.by_evidence()) find_effects(trials, result);
    say_comparisons(trials, result);
  }
  warn_of_environments(trials, result);
  warn_of("cut", "cut examples that are too long", trials, result);
  warn_of("grown", "made the loss larger", trials, result);
  warn_of_lost_answers(trials, result);
  say_stopped(trials, result);
  auto const losers =
      mapped(trials.losers, [&](Loser const& each) { return fmt::format("{} after {}", ablation.arms[each.arm].name, each.seeds); });
  if (!losers.empty()) result.sentences.push_back(fmt::format("stop_losers: no more seeds for {}", fmt::join(losers, ", ")));
  if (auto const which = convolutions_in_words(ablation)) result.sentences.push_back(*which);
  if (auto const& claim = ablation.settings.claim; claim.given())
    std::ranges::move(claim_in_words(claim, finding_of(claim, result), ablation.folder()), std::back_inserter(result.sentences));
  std::ranges::move(cross_validation_in_words(ablation, result), std::back_inserter(result.sentences));
  warn_of_plan(trials, result);
  warn_of_diverged(result);
  warn_of_no_pairs(result);
  warn_of_open_effects(result);
  warn_of_tuning(trials, result);
  return result;
}

}  // namespace heed
