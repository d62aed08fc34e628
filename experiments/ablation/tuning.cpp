#include "experiments/ablation/tuning.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/config/scalar.hpp"
#include "experiments/metric/evidence.hpp"
#include "experiments/report/grid.hpp"

namespace heed {

namespace {

Job::State first_state(bool in_shard) { return in_shard ? Job::State::waiting : Job::State::other_shard; }

/// The trials of an arm at a point of the grid, by seed.
std::vector<Job const*> trials_at(Ablation const& ablation, TuningResult const& tuned, std::size_t arm, std::size_t point) {
  std::vector<Job const*> trials;
  for (std::size_t i = arm * ablation.tuning->points.size() + point; i < tuned.jobs.size(); i += tuned.names.size())
    trials.push_back(&tuned.jobs[i]);
  return trials;
}

/// The mean of the metric over an arm's tuning seeds at a point; nothing unless all of these trials are finished.
std::optional<double> score_of(Ablation const& ablation, TuningResult const& tuned, std::size_t arm, std::size_t point) {
  double mean = 0;
  auto const trials = trials_at(ablation, tuned, arm, point);
  for (Job const* const job : trials) {
    if (job->state != Job::State::done) return std::nullopt;
    mean += *job->value / static_cast<double>(trials.size());
  }
  return trials.empty() || std::isnan(mean) ? std::nullopt : std::optional(mean);
}

/// The point with an arm's best score, the first of ties; nothing if no score is finite.
std::optional<std::size_t> best_point(Ablation const& ablation, TuningResult const& tuned, std::size_t arm) {
  double const sign = ablation.settings.higher_is_better() ? -1 : 1;
  std::optional<std::size_t> best;
  double lowest = INFINITY;
  for (std::size_t point = 0; point < ablation.tuning->points.size(); ++point)
    if (auto const score = score_of(ablation, tuned, arm, point); score && std::isfinite(*score) && sign * *score < lowest)
      best = point, lowest = sign * *score;
  return best;
}

bool is_tuned(Ablation const& ablation, TuningResult const& tuned, std::size_t arm) {
  std::size_t const points = ablation.tuning->points.size();
  return std::ranges::all_of(tuned.jobs, [&](Job const& job) { return job.arm / points != arm || job.has_ended(); });
}

}  // namespace

TuningResult tuning_trials(Ablation const& ablation) {
  TuningResult tuned;
  if (!ablation.tuning) return tuned;
  auto const& [points, seeds] = *ablation.tuning;
  for (auto const& arm : ablation.arms)
    for (auto const& point : points) tuned.names.push_back(fmt::format("{} {}", arm.name, point.name));
  for (auto const seed : seeds) {
    std::size_t row = 0;
    for (std::size_t i = 0; i < ablation.arms.size(); ++i)
      for (auto const& point : points)
        tuned.jobs.push_back({.arm = row++,
                              .seed = seed,
                              .experiment = tuning_trial(ablation, ablation.arms[i], point, seed),
                              .state = first_state(ablation.in_shard(i, 0))});
  }
  return tuned;
}

bool is_given_up(Ablation const& ablation, TuningResult const& tuned, std::size_t arm) {
  return arm < tuned.chosen.size() && !tuned.chosen[arm] && is_tuned(ablation, tuned, arm);
}

void choose(Ablation const& ablation, TuningResult& tuned) {
  tuned.chosen.clear();
  for (std::size_t arm = 0; ablation.tuning && arm < ablation.arms.size(); ++arm)
    tuned.chosen.push_back(is_tuned(ablation, tuned, arm) ? best_point(ablation, tuned, arm) : std::nullopt);
}

std::vector<Assignment> tuned_changes(Ablation const& ablation, TuningResult const& tuned, std::size_t arm) {
  if (arm >= tuned.chosen.size() || !tuned.chosen[arm]) return {};
  return ablation.tuning->points[*tuned.chosen[arm]].changes;
}

std::vector<Job> comparison_trials(Ablation const& ablation, TuningResult const& tuned) {
  std::vector<Job> jobs;
  for (std::size_t number = 0; number < ablation.seeds.size(); ++number) {
    Index const seed = ablation.seeds[number];
    for (std::size_t i = 0; i < ablation.arms.size(); ++i) {
      auto const& arm = ablation.arms[i];
      if (ablation.tuning && (i >= tuned.chosen.size() || !tuned.chosen[i])) continue;
      jobs.push_back({.arm = i,
                      .seed = seed,
                      .experiment = trial_of(ablation, arm.name, joined_changes(arm.changes, tuned_changes(ablation, tuned, i)), seed),
                      .state = first_state(ablation.in_shard(i, number))});
    }
  }
  return jobs;
}

void AblationTrials::look(Ablation const& ablation) {
  if (tuned.jobs.empty()) tuned = tuning_trials(ablation);
  look_at(tuned.jobs, ablation.settings);
  auto const before = tuned.chosen;
  choose(ablation, tuned);
  if (jobs.empty() || tuned.chosen != before) jobs = comparison_trials(ablation, tuned);
  auto const ended = [&] { return std::ranges::count_if(jobs, &Job::has_ended); };
  look_at(jobs, ablation.settings);
  if (!ablation.settings.by_evidence()) return;
  for (std::ptrdiff_t seen = -1; give_out_seeds(ablation, jobs).open && ended() != seen; look_at(jobs, ablation.settings)) seen = ended();
}

std::vector<std::string> choices_on_edge(Ablation const& ablation, TuningResult const& tuned) {
  std::vector<std::string> sentences;
  if (!ablation.tuning) return sentences;
  auto const& points = ablation.tuning->points;
  for (std::size_t key = 0; key < points.front().changes.size(); ++key) {
    auto const values = mapped(points, [&](Arm const& point) {
      auto const& value = point.changes[key].value;
      return value.kind == Yaml::NodeKind::scalar ? parse_real(value.text) : std::nullopt;
    });
    auto const [lowest, highest] = std::ranges::minmax(values);  // a value that is no number is the lowest
    if (!lowest || lowest == highest) continue;
    std::map<std::pair<bool, std::string>, std::vector<std::string>> arms;  // by end and value
    for (std::size_t i = 0; i < tuned.chosen.size(); ++i) {
      if (!tuned.chosen[i]) continue;
      auto const point = *tuned.chosen[i];
      bool ties = false;  // then another value is as good as the edge
      for (std::size_t other = 0; other < points.size(); ++other)
        ties |= values[other] != values[point] && score_of(ablation, tuned, i, other) == score_of(ablation, tuned, i, point);
      if (!ties && (values[point] == lowest || values[point] == highest))
        arms[{values[point] == highest, points[point].changes[key].value.text}].push_back(ablation.arms[i].name);
    }
    for (auto const& [end, names] : arms)
      sentences.push_back(fmt::format("the selected {} {} for {} lies on the edge: it is the {} that was tried, and a {} one may be better",
                                      last_word(points.front().changes[key].key), end.second, fmt::join(names, ", "),
                                      end.first ? "largest" : "smallest", end.first ? "larger" : "smaller"));
  }
  return sentences;
}

KeyValues keys_of(std::vector<Assignment> const& changes) {
  return mapped(changes, [](Assignment const& change) { return std::pair(change.key, emit_line(change.value)); });
}

TuningScores tuning_scores(Ablation const& ablation, TuningResult const& tuned) {
  auto const& tuning = *ablation.tuning;
  TuningScores scores{.seeds = tuning.seeds, .points = {}, .arms = {}};
  for (auto const& point : tuning.points) scores.points.push_back({point.name, keys_of(point.changes)});
  auto const& chosen = tuned.chosen;
  for (std::size_t i = 0; i < ablation.arms.size(); ++i) {
    auto& arm = scores.arms.emplace_back();
    arm.name = ablation.arms[i].name;
    if (i < chosen.size()) arm.chosen = chosen[i];
    for (std::size_t point = 0; point < tuning.points.size(); ++point) {
      arm.scores.push_back(score_of(ablation, tuned, i, point));
      arm.values.emplace_back();
      for (Job const* const job : trials_at(ablation, tuned, i, point))
        if (job->state == Job::State::done) arm.values.back().push_back(*job->value);
    }
  }
  return scores;
}

// ---------------------------------------------------------------- who gets more seeds

namespace {

/// A trial that was trained ahead may turn out not to be needed: it counts as if it were not there.
void spare(Job& job) {
  if (job.state == Job::State::running || job.state == Job::State::other_shard) return;
  job.state = Job::State::spared;
  job.value.reset();
  job.history.reset();
}

using Values = std::vector<std::vector<double>>;  ///< by arm, of the first seeds; of a failed trial NaN

/// Over the first seeds, of those that both have, times a sign.
std::vector<double> differences(std::vector<double> const& values, std::vector<double> const& others, double sign = 1) {
  std::vector<double> all;
  for (std::size_t seed = 0; seed < values.size(); ++seed)
    if (double const each = sign * (values[seed] - others[seed]); !std::isnan(each)) all.push_back(each);
  return all;
}

/// Of the arms still in it lets those go that have lost, or have a verdict.
void leave(Ablation const& ablation, Values const& values, std::vector<std::size_t>& in, std::vector<Loser>& losers) {
  if (in.empty()) return;
  auto const& settings = ablation.settings;
  auto const seeds = values[in.front()].size(), baseline = ablation.baseline, others = ablation.arms.size() - 1;
  Question const question = settings.question();
  double const sign = question.better == Better::higher ? -1 : 1;
  auto const best = *std::ranges::min_element(in, {}, [&](std::size_t arm) {
    double const sum = sign * std::accumulate(values[arm].begin(), values[arm].end(), 0.0);
    return std::isnan(sum) ? INFINITY : sum;
  });
  bool const several = in.size() > 1, compared = !values[baseline].empty();
  std::erase_if(in, [&](std::size_t arm) {
    if (arm == baseline) return false;
    if (settings.stop_losers && arm != best &&
        lies_between(question.margin, INFINITY, differences(values[arm], values[best], sign),
                     question.significance() / static_cast<double>(others))) {
      if (seeds < ablation.seeds.size()) losers.push_back({arm, seeds});
      return true;
    }
    return settings.until_verdict && compared && seeds >= static_cast<std::size_t>(*settings.until_verdict) &&
           verdict_by_evidence(differences(values[arm], values[baseline]), question, others) != Verdict::unclear;
  });
  if (several && in == std::vector{baseline}) in.clear();
}

}  // namespace

SeedsDecided give_out_seeds(Ablation const& ablation, std::vector<Job>& jobs, Index at_a_time) {
  std::vector<std::size_t> in;
  std::vector<Loser> losers;
  Values values(ablation.arms.size());
  Index open = 0, in_reserve = 0;
  auto next = jobs.begin();
  for (auto const seed : ablation.seeds) {
    for (; next != jobs.end() && next->seed == seed; ++next) {
      Job& job = *next;
      if (seed == ablation.seeds.front()) in.push_back(job.arm);
      bool const ahead = open > 0 && in_reserve >= at_a_time;  // seeds that follow wait until those before have told
      if (!std::ranges::binary_search(in, job.arm) || (ahead && !job.has_ended())) {
        spare(job);
      } else if (!job.has_ended()) {
        if (job.state == Job::State::spared) job.state = Job::State::waiting;
        ++in_reserve;
      }
      values[job.arm].push_back(compared_value(job, ablation.settings).value_or(std::nan("")));
    }
    if (open == 0) open = in_reserve;
    if (open == 0) leave(ablation, values, in, losers);
  }
  return {open > 0, losers};
}

}  // namespace heed
