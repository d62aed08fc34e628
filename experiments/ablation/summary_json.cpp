#include <algorithm>

#include <nlohmann/json.hpp>

#include "experiments/ablation/summary.hpp"
#include "experiments/metric/row.hpp"
#include "experiments/run/record.hpp"
#include "experiments/run/result_file.hpp"

namespace heed {

using Json = nlohmann::ordered_json;
using State = Job::State;

namespace {

/// Of a finished trial: what computed the numbers.
Json environment_of(std::vector<Job> const& jobs) {
  auto const done = std::ranges::find(jobs, State::done, &Job::state);
  return done == jobs.end() ? environment() : read_json(done->folder() / "summary.json").value("environment", Json::object());
}

Json interval_json(std::optional<Interval> const& interval) {
  return interval ? Json::array({interval->low, interval->high}) : Json(nullptr);
}

Json optional_json(std::optional<double> const& value) { return value ? number(*value) : Json(nullptr); }

Json difference_json(Comparison const& c) {
  return {{"mean", number(c.mean)},
          {"interval", interval_json(c.interval)},
          {"p", c.p},
          {"p_alone", c.p_alone},
          {"p_paired_t", optional_json(c.p_t)},
          {"signed_ranks", c.ranked},
          {"effect", optional_json(c.effect)},
          {"p_equivalence", optional_json(c.p_equivalence)},
          {"verdict", name(c.verdict)},
          {"seeds", c.seeds}};
}

Json arm_json(Summary const& summary, std::size_t i) {
  auto const& arm = summary.arms[i];
  Json json{{"name", arm.name}, {"keys", Json::object()}, {"folders", Json::array()}, {"parameters", arm.parameters}};
  for (auto const& change : arm.changes) json["keys"][change.key] = emit_line(change.value);
  for (Job const* job : arm.jobs) json["folders"].push_back(job->experiment.settings.name);
  json["values"] = Json::object();
  for (auto const& [seed, value] : arm.values) json["values"][std::to_string(seed)] = number(value);
  json["diverged"] = arm.diverged;
  if (auto const& mean = summary.means[i]) {
    json["mean"] = number(mean->mean);
    json["deviation"] = number(mean->deviation);
    json["interval"] = interval_json(mean->interval);
    json["interval_method"] = mean->method;
  }
  if (auto const& comparison = summary.comparisons[i]) json["difference"] = difference_json(*comparison);
  for (auto const& [name, values] : arm.costs) json[name] = number(*arm.cost(name));
  for (auto const& change : choice_of(summary.ablation, summary.tuned, i)) json["tuned"][change.key] = emit_line(change.value);
  return json;
}

Json trends_json(std::vector<Trend> const& trends) {
  auto json = Json::array();
  for (auto const& trend : trends)
    json.push_back({{"key", trend.key},
                    {"elsewhere", trend.elsewhere},
                    {"values", trend.values},
                    {"seeds", trend.correlation.count},
                    {"spearman", number(trend.correlation.mean)},
                    {"interval", interval_json(trend.correlation.interval)}});
  return json;
}

Json effects_json(std::vector<Effect> const& effects) {
  Json all = Json::array();
  for (auto const& effect : effects)
    all.push_back({{"name", effect.name},
                   {"interaction", effect.interaction},
                   {"mean", number(effect.comparison.mean)},
                   {"interval", interval_json(effect.comparison.interval)},
                   {"p", effect.comparison.p},
                   {"seeds", effect.comparison.seeds},
                   {"averaged", effect.averaged},
                   {"combinations", effect.combinations}});
  return all;
}

/// The tuning grid: its points, and of each arm the score and the trials' values at each point, and which it chose.
Json tuning_json(Summary const& summary) {
  auto const& tuning = *summary.ablation.tuning;
  Json json{{"seeds", tuning.seeds}, {"points", Json::array()}, {"arms", Json::array()}};
  for (auto const& point : tuning.points) {
    Json keys = Json::object();
    for (auto const& change : point.changes) keys[change.key] = emit_line(change.value);
    json["points"].push_back({{"name", point.name}, {"keys", keys}});
  }
  auto const& chosen = summary.tuned.chosen;
  for (std::size_t i = 0; i < summary.arms.size(); ++i) {
    Json arm{{"name", summary.arms[i].name},
             {"scores", Json::array()},
             {"values", Json::array()},
             {"chosen", i < chosen.size() && chosen[i] ? Json(*chosen[i]) : Json(nullptr)}};
    for (std::size_t point = 0; point < tuning.points.size(); ++point) {
      arm["scores"].push_back(optional_json(score_of(summary.ablation, summary.tuned, i, point)));
      Json values = Json::array();
      for (Job const* const job : trials_at(summary.ablation, summary.tuned, i, point))
        if (job->state == State::done) values.push_back(number(*job->value));
      arm["values"].push_back(values);
    }
    json["arms"].push_back(arm);
  }
  return json;
}

/// How many trials are done, or have failed; those of an arm that no point of the grid trains count as well, for they are not coming.
std::size_t ended(Summary const& summary) {
  auto const in = [](std::vector<Job> const& jobs) {
    return static_cast<std::size_t>(
        std::ranges::count_if(jobs, [](Job const& job) { return job.state == State::done || job.state == State::failed; }));
  };
  auto const given_up = static_cast<std::size_t>(std::ranges::count_if(summary.tuned.chosen, [](auto const& point) { return !point; }));
  return in(summary.tuned.jobs) + in(summary.jobs) + given_up * summary.ablation.seeds.size();
}

/// Of the comparison and of tuning.
std::size_t all_trials(Ablation const& ablation) {
  std::size_t const tuning = ablation.tuning ? ablation.tuning->points.size() * ablation.tuning->seeds.size() : 0;
  return ablation.arms.size() * (ablation.seeds.size() + tuning);
}

}  // namespace

Json summary_json(Summary const& summary) {
  auto const& ablation = summary.ablation;
  auto const& settings = ablation.settings;
  Json json{{"ablation", settings.ablation},
            {"metric", settings.metric},
            {"better", settings.higher_is_better() ? "higher" : "lower"},
            {"at", summary.at()},
            {"unit", summary.unit()},
            {"margin", settings.margin ? Json(*settings.margin) : Json(nullptr)},
            {"seeds", ablation.seeds},
            {"baseline", summary.arms[ablation.baseline].name},
            {"varied", ablation.varied},
            {"steps", summary.steps()},
            {"arms", Json::array()},
            {"failures", Json::array()},
            {"missing", Json::array()},
            {"trials_done", ended(summary)},
            {"trials_of", all_trials(ablation)},
            {"trials", Json::array()},
            {"effects", effects_json(summary.effects)},
            {"trends", trends_json(summary.trends)},
            {"sentences", summary.sentences},
            {"warnings", summary.warnings},
            {"environment", environment_of(summary.jobs)},
            {"configuration", ablation.resolved}};
  for (std::size_t i = 0; i < summary.arms.size(); ++i) json["arms"].push_back(arm_json(summary, i));
  if (ablation.tuning) json["tuning"] = tuning_json(summary);
  for (auto const& [name, curve, value] : ablation.published)
    json["published"].push_back({{"name", name}, {"curve", curve}, {"value", value}});
  for (auto const* trials : {&summary.tuned.jobs, &summary.jobs})
    for (Job const& job : *trials) json["trials"].push_back(job.experiment.settings.name);
  for (auto const& [who, job] : summary.failures)
    json["failures"].push_back({{"arm", who},
                                {"seed", job->seed},
                                {"folder", job->experiment.settings.name},
                                {"message", job->failure.message},
                                {"log", job->failure.log}});
  for (Job const& job : summary.jobs) {
    if (job.state != State::failed && job.state != State::done)
      json["missing"].push_back({{"arm", summary.arms[job.arm].name}, {"seed", job.seed}});
  }
  return json;
}

}  // namespace heed
