#include "experiments/ablation/results.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "experiments/ablation/arm_result.hpp"
#include "experiments/ablation/effects.hpp"
#include "experiments/metric/info.hpp"
#include "experiments/metric/statistics.hpp"
#include "experiments/report/grid.hpp"
#include "experiments/run/record.hpp"
#include "experiments/run/result_file.hpp"
#include "experiments/text/table.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/input_file.hpp"
#include "nn/files/json.hpp"

namespace heed {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

using State = Job::State;

/// Of a finished trial: what computed the numbers.
Json environment_of(std::vector<Job> const& jobs) {
  auto const done = std::ranges::find(jobs, State::done, &Job::state);
  return done == jobs.end() ? environment() : read_json(done->folder() / "summary.json").value("environment", Json::object());
}

/// What must be equal for numbers to be compared: revision and matrix library of every trial. A warning for each that is not.
std::vector<std::string> warnings_of(Ablation const& ablation, std::vector<Job> const& jobs) {
  std::vector<std::string> warnings;
  std::map<std::string, std::map<std::string, std::vector<std::string>>> found;
  for (Job const& job : jobs) {
    if (job.state != State::done) continue;
    auto const environment = read_json(job.folder() / "summary.json").value("environment", Json::object());
    for (auto const& [key, value] : environment.items()) {
      if (key == "revision" || key == "blas" || key == "processor")
        found[key][value.is_string() ? value.get<std::string>() : json_text(value)].push_back(job.experiment.settings.name);
    }
  }
  for (auto const& [key, values] : found) {
    if (values.size() < 2) continue;
    std::vector<std::string> parts;
    for (auto const& [value, runs] : values) parts.push_back(fmt::format("{} ({} runs, {} …)", value, runs.size(), runs.front()));
    warnings.push_back(
        fmt::format("the runs were made with different {}: {}", key == "blas" ? "matrix libraries" : key + "s", fmt::join(parts, "; ")));
  }
  std::size_t const seeds = ablation.seeds.size();
  if (smallest_p(seeds) > 0.05)
    warnings.push_back(
        fmt::format("{} paired seeds cannot show a difference at p ≤ 0.05: the smallest p that they can reach is {:.3g}; "
                    "six or more can",
                    seeds, smallest_p(seeds)));
  return warnings;
}

Json interval_json(std::optional<Interval> const& interval) {
  return interval ? Json::array({interval->low, interval->high}) : Json(nullptr);
}

std::string unit_of(std::string const& metric) {
  auto const* const info = find_metric(metric);
  return info == nullptr ? "" : info->unit;
}

/// A job that failed, and whose it is: an arm's, or an arm's at a point of the tuning grid.
struct FailedJob {
  std::string who;
  Job const* job;
};

std::vector<FailedJob> failures_of(Ablation const& ablation, std::vector<Job> const& jobs, TuningResult const& tuned) {
  std::vector<FailedJob> failures;
  for (Job const& job : tuned.jobs) {
    if (job.state == State::failed) failures.push_back({tuned.names.at(job.arm) + " (tuning)", &job});
  }
  for (Job const& job : jobs) {
    if (job.state == State::failed) failures.push_back({ablation.arms.at(job.arm).name, &job});
  }
  return failures;
}

class Summary {
 public:
  Summary(Ablation const& ablation, std::vector<Job> const& jobs, TuningResult const& tuned)
      : ablation_(ablation),
        jobs_(jobs),
        tuned_(tuned),
        arms_(gather(ablation, jobs)),
        question_{.better = ablation.settings.higher_is_better() ? Better::higher : Better::lower,
                  .margin = ablation.settings.margin.value_or(0)},
        failures_(failures_of(ablation, jobs, tuned)),
        warnings_(warnings_of(ablation, jobs)) {
    for (std::size_t i = 0; i < tuned.chosen.size(); ++i) {
      if (!tuned.chosen[i]) warnings_.push_back(fmt::format("{}: no point of the tuning grid trains it to its end", arms_[i].name));
    }
    for (std::size_t i = 0; i < arms_.size(); ++i) {
      if (i != ablation.baseline) others_.push_back(i);
    }
    std::vector<BySeed> values;
    for (std::size_t const i : others_) values.push_back(arms_[i].values);
    comparisons_ = compare(values, arms_[ablation.baseline].values, question_);
    find_effects();
    for (std::size_t k = 0; k < others_.size(); ++k) {
      if (comparisons_[k].seeds > 0)
        sentences_.push_back(sentence(name_with_tuned(others_[k]), name_with_tuned(ablation.baseline), unit_of(ablation.settings.metric),
                                      comparisons_[k], question_));
    }
    for (auto const& published : ablation.published) {
      for (std::size_t i = 0; i < arms_.size(); ++i) {
        if (arms_[i].values.empty()) continue;
        if (auto said = beside_published(published, name_with_tuned(i), estimate_of(arms_[i]), steps())) sentences_.push_back(*said);
      }
    }
  }

  void write() const {
    write_csv(ablation_, arms_);
    write_probes(ablation_, arms_);
    write_atomically(ablation_.folder() / "summary.json", json_text(json(), 2) + "\n");
    write_atomically(ablation_.folder() / "summary.md", markdown());
  }

  std::string page() const {
    auto const& settings = ablation_.settings;
    std::string text = fmt::format("{}: {} ({}, {} is better), mean and 95 % interval over {} seeds\n\n", ablation_.folder().string(),
                                   settings.metric, settings.at, settings.higher_is_better() ? "higher" : "lower", ablation_.seeds.size());
    text += table(rows()) + "\n";
    for (auto const& line : sentences_) text += "  " + line + "\n";
    for (auto const& line : warnings_) text += "  warning: " + line + "\n";
    for (auto const& [who, job] : failures_) text += fmt::format("  failed: {}, seed {}: {}\n", who, job->seed, job->failure.message);
    return text;
  }

 private:
  /// Of a grid: which arm is ahead, and what the keys do by themselves and together.
  void find_effects() {
    std::vector<Keys> keys;
    for (auto const& arm : arms_) {
      keys.emplace_back();
      for (auto const& change : arm.changes) keys.back().emplace_back(change.key, emit_line(change.value));
    }
    auto const grid = grid_of(keys);
    if (!grid) return;
    std::vector<BySeed> values;
    std::optional<std::pair<double, std::size_t>> best;
    for (std::size_t i = 0; i < arms_.size(); ++i) {
      values.push_back(arms_[i].values);
      if (arms_[i].values.empty()) continue;
      double const mean = estimate_of(arms_[i]).mean, cost = question_.better == Better::higher ? -mean : mean;
      if (!best || cost < best->first) best = {cost, i};
    }
    if (!best) return;
    auto const mean = estimate_of(arms_[best->second]);
    NumberFormat const format = format_of_means();
    sentences_.push_back(fmt::format("{} mean: {}, {}{}", question_.better == Better::higher ? "highest" : "lowest",
                                     name_with_tuned(best->second), format(mean.mean),
                                     mean.interval ? " " + format.interval(mean.interval->low, mean.interval->high) : ""));
    effects_ = effects_of(*grid, values, ablation_.baseline, unit_of(ablation_.settings.metric), question_);
    for (auto const& effect : effects_)
      if (!effect.sentence.empty()) sentences_.push_back(effect.sentence);
    if (std::ranges::none_of(effects_, [](Effect const& effect) { return effect.interaction && !effect.sentence.empty(); }))
      sentences_.emplace_back("no interaction is clear");
  }

  /// How the metric is written.
  NumberFormat format_of_means() const {
    double largest = 0;
    for (auto const& arm : arms_)
      if (!arm.values.empty()) largest = std::max(largest, std::abs(estimate_of(arm).mean));
    return NumberFormat(largest);
  }

  Comparison const* comparison(std::size_t arm) const {
    auto const found = std::ranges::find(others_, arm);
    return found == others_.end() ? nullptr : &comparisons_[static_cast<std::size_t>(found - others_.begin())];
  }

  /// What tuning chose for an arm, as "lr 3.0e-3"; empty without tuning.
  std::string tuned_words(std::size_t arm) const {
    std::vector<std::string> words;
    if (arm < tuned_.chosen.size() && tuned_.chosen[arm])
      for (auto const& change : *tuned_.chosen[arm]) words.push_back(last_word(change.key) + " " + emit_line(change.value));
    return fmt::format("{}", fmt::join(words, ", "));
  }

  std::string name_with_tuned(std::size_t arm) const {
    auto const words = tuned_words(arm);
    return words.empty() ? arms_[arm].name : fmt::format("{} ({})", arms_[arm].name, words);
  }

  std::vector<std::vector<std::string>> rows() const {
    std::vector<std::vector<std::string>> rows{{"arm", with_unit(ablation_.settings.metric), "95 % interval", "difference", "p", "effect",
                                                "", "seeds", "s/run", "tokens/s", "MB"}};
    if (!tuned_.chosen.empty()) rows.front().emplace_back("tuned");
    NumberFormat const format = format_of_means();
    for (std::size_t i = 0; i < arms_.size(); ++i) {
      auto const& arm = arms_[i];
      if (arm.values.empty()) {
        rows.push_back({arm.name, "–", "", "", "", "", "", fmt::format("0/{}", ablation_.seeds.size())});
        continue;
      }
      auto const mean = estimate_of(arm);
      std::vector<std::string> row{arm.name, format(mean.mean),
                                   mean.interval ? format.interval(mean.interval->low, mean.interval->high) : ""};
      if (auto const* const c = comparison(i); c != nullptr && c->seeds > 0) {
        row.push_back(format.difference(c->mean, half_width_of(c->interval)));
        row.push_back(fmt::format("{:.2g}", c->p));
        row.push_back(c->effect ? fmt::format("{:+.1f}", *c->effect) : "");
        row.emplace_back(name(c->verdict));
      } else {
        row.insert(row.end(), {i == ablation_.baseline ? "baseline" : "", "", "", ""});
      }
      row.push_back(arm.values.size() == ablation_.seeds.size() ? fmt::format("{}", arm.values.size())
                                                                : fmt::format("{}/{}", arm.values.size(), ablation_.seeds.size()));
      auto const cell = [](std::optional<double> value, double unit, int digits) {
        return value ? fmt::format("{:.{}f}", *value * unit, digits) : "";
      };
      row.push_back(cell(arm.cost("time.seconds"), 1, 1));
      row.push_back(cell(arm.cost("time.tokens_per_second"), 1, 0));
      row.push_back(cell(arm.cost("memory.peak"), 1e-6, 1));
      if (!tuned_.chosen.empty()) row.push_back(tuned_words(i));
      rows.push_back(std::move(row));
    }
    return rows;
  }

  static Estimate estimate_of(ArmResult const& arm) {
    std::vector<double> values;
    for (auto const& [seed, value] : arm.values) values.push_back(value);
    return estimate(values);
  }

  Json arm_json(std::size_t i) const {
    auto const& arm = arms_[i];
    Json json{{"name", arm.name}, {"keys", Json::object()}, {"folders", Json::array()}, {"parameters", arm.parameters}};
    for (auto const& change : arm.changes) json["keys"][change.key] = emit_line(change.value);
    for (Job const* job : arm.jobs) json["folders"].push_back(job->experiment.settings.name);
    json["values"] = Json::object();
    for (auto const& [seed, value] : arm.values) json["values"][std::to_string(seed)] = value;
    if (!arm.values.empty()) {
      auto const mean = estimate_of(arm);
      json["mean"] = mean.mean;
      json["deviation"] = mean.deviation;
      json["interval"] = interval_json(mean.interval);
      json["interval_method"] = mean.method;
    }
    if (auto const* const c = comparison(i); c != nullptr && c->seeds > 0) {
      json["difference"] = {{"mean", c->mean}, {"interval", interval_json(c->interval)}, {"p", c->p}, {"p_alone", c->p_alone}};
      json["difference"]["effect"] = c->effect ? Json(*c->effect) : Json(nullptr);
      json["difference"]["p_equivalence"] = c->p_equivalence ? Json(*c->p_equivalence) : Json(nullptr);
      json["difference"]["verdict"] = name(c->verdict);
      json["difference"]["seeds"] = c->seeds;
    }
    for (auto const& [name, values] : arm.costs) json[name] = *arm.cost(name);
    if (i < tuned_.chosen.size() && tuned_.chosen[i]) {
      for (auto const& change : *tuned_.chosen[i]) json["tuned"][change.key] = emit_line(change.value);
    }
    return json;
  }

  /// Of training.
  std::int64_t steps() const { return (jobs_.empty() ? tuned_.jobs : jobs_).front().experiment.settings.train.steps; }

  /// Of each arm.
  std::size_t tuning_trials() const { return ablation_.tuning ? ablation_.tuning->points.size() * ablation_.tuning->seeds.size() : 0; }

  /// How many trials are done, or have failed; those of an arm that no point of the grid trains count as well, for they are not coming.
  std::size_t ended() const {
    auto const in = [](std::vector<Job> const& jobs) {
      return static_cast<std::size_t>(
          std::ranges::count_if(jobs, [](Job const& job) { return job.state == State::done || job.state == State::failed; }));
    };
    auto const given_up = static_cast<std::size_t>(std::ranges::count_if(tuned_.chosen, [](auto const& point) { return !point; }));
    return in(tuned_.jobs) + in(jobs_) + given_up * ablation_.seeds.size();
  }

  Json effects_json() const {
    Json all = Json::array();
    for (auto const& [name, interaction, c, words] : effects_)
      all.push_back({{"name", name},
                     {"interaction", interaction},
                     {"mean", c.mean},
                     {"interval", interval_json(c.interval)},
                     {"p", c.p},
                     {"seeds", c.seeds}});
    return all;
  }

  Json json() const {
    auto const& settings = ablation_.settings;
    Json json{{"ablation", settings.ablation},
              {"metric", settings.metric},
              {"better", settings.higher_is_better() ? "higher" : "lower"},
              {"at", settings.at},
              {"unit", unit_of(settings.metric)},
              {"margin", settings.margin ? Json(*settings.margin) : Json(nullptr)},
              {"seeds", ablation_.seeds},
              {"baseline", arms_[ablation_.baseline].name},
              {"varied", ablation_.varied},
              {"steps", steps()},
              {"arms", Json::array()},
              {"failures", Json::array()},
              {"missing", Json::array()},
              {"trials_done", ended()},
              {"trials_of", ablation_.arms.size() * (ablation_.seeds.size() + tuning_trials())},
              {"trials", Json::array()},
              {"effects", effects_json()},
              {"sentences", sentences_},
              {"warnings", warnings_},
              {"environment", environment_of(jobs_)},
              {"configuration", ablation_.resolved},
              {"base", base_text(ablation_)}};
    for (std::size_t i = 0; i < arms_.size(); ++i) json["arms"].push_back(arm_json(i));
    for (auto const& [name, curve, value] : ablation_.published)
      json["published"].push_back({{"name", name}, {"curve", curve}, {"value", value}});
    for (auto const* trials : {&tuned_.jobs, &jobs_})
      for (Job const& job : *trials) json["trials"].push_back(job.experiment.settings.name);
    for (auto const& [who, job] : failures_)
      json["failures"].push_back({{"arm", who},
                                  {"seed", job->seed},
                                  {"folder", job->experiment.settings.name},
                                  {"message", job->failure.message},
                                  {"log", job->failure.log}});
    for (Job const& job : jobs_) {
      if (job.state != State::failed && job.state != State::done)
        json["missing"].push_back({{"arm", arms_[job.arm].name}, {"seed", job.seed}});
    }
    return json;
  }

  std::string markdown() const {
    auto const& settings = ablation_.settings;
    std::string text = fmt::format("# {}\n\n`{}` ({}), mean and 95 % interval over {} seeds; {} is better.\n\n", settings.ablation,
                                   settings.metric, settings.at, ablation_.seeds.size(), settings.higher_is_better() ? "higher" : "lower");
    auto const lines = rows();
    for (std::size_t i = 0; i < lines.size(); ++i) {
      text += markdown_row(lines[i]);
      if (i == 0) text += markdown_row(std::vector<std::string>(lines[i].size(), "---"));
    }
    if (!effects_.empty()) text += "\n| effect | difference | p |\n| --- | --- | --- |\n";
    NumberFormat const format = format_of_means();
    for (auto const& [name, interaction, c, words] : effects_)
      text += fmt::format("| {} | {} | {:.2g} |\n", name, format.difference(c.mean, half_width_of(c.interval)), c.p);
    text += '\n';
    for (auto const& line : sentences_) text += "- " + line + "\n";
    for (auto const& line : warnings_) text += "- **warning**: " + line + "\n";
    for (auto const& [who, job] : failures_) text += fmt::format("- **failed**: {}, seed {}: {}\n", who, job->seed, job->failure.message);
    return text;
  }

  Ablation const& ablation_;
  std::vector<Job> const& jobs_;
  TuningResult const& tuned_;
  std::vector<ArmResult> arms_;
  Question question_;
  std::vector<std::size_t> others_;  ///< the arms that are not the baseline
  std::vector<Comparison> comparisons_;
  std::vector<FailedJob> failures_;
  std::vector<Effect> effects_;
  std::vector<std::string> sentences_, warnings_;
};

}  // namespace

std::string write_results(Ablation const& ablation, std::vector<Job> const& jobs, TuningResult const& tuned) {
  Summary const summary(ablation, jobs, tuned);
  summary.write();
  return summary.page();
}

}  // namespace heed
