#include "experiments/report/ablation_result.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "autograd/error.hpp"
#include "experiments/metric/info.hpp"
#include "experiments/metric/row.hpp"
#include "nn/files/json.hpp"
#include "nn/files/number.hpp"

namespace heed {

using Json = nlohmann::ordered_json;

std::string ArmResult::tuned_words() const {
  auto const words = mapped(tuned, [](auto const& chosen) { return last_word(chosen.first) + " " + chosen.second; });
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string ArmResult::name_with_tuned() const { return tuned.empty() ? name : fmt::format("{} ({})", name, tuned_words()); }

bool over_all_combinations(std::vector<Effect> const& effects) {
  return std::ranges::all_of(effects, [](Effect const& effect) { return effect.averaged == effect.combinations; });
}

ArmResult const* AblationResult::baseline_arm() const {
  auto const found = std::ranges::find(arms, baseline, &ArmResult::name);
  return found == arms.end() ? nullptr : &*found;
}

NumberFormat AblationResult::format() const {
  std::vector<double> means;
  for (auto const& arm : arms)
    if (arm.estimate) means.push_back(arm.estimate->mean);
  return NumberFormat::of(means);
}

std::vector<double> AblationResult::differences(ArmResult const& arm) const {
  std::vector<double> all;
  ArmResult const& base = *baseline_arm();
  for (auto const seed : seeds) {
    auto const open = [&](ArmResult const& which) { return std::ranges::count(missing, std::pair(which.name, seed)) > 0; };
    if (open(arm) || open(base)) break;
    auto const own = arm.values.find(seed), other = base.values.find(seed);
    bool const both = own != arm.values.end() && other != base.values.end();
    if (both && !(std::isinf(own->second) && own->second == other->second)) all.push_back(own->second - other->second);
  }
  return all;
}

bool AblationResult::by_evidence() const {
  return std::ranges::any_of(arms, [](ArmResult const& arm) { return arm.difference && arm.difference->e; });
}

std::string AblationResult::test_in_words() const {
  return by_evidence() ? "1 over the largest evidence so far, which may be looked at after every pair, corrected for the number of arms; "
                         "intervals of differences are confidence sequences, corrected likewise"
                       : "sign-flip test, corrected for the number of arms";
}

std::optional<Grid> AblationResult::grid() const { return grid_of(mapped(arms, &ArmResult::keys)); }

// ---------------------------------------------------------------- members

std::vector<std::pair<std::string, std::string>> texts_at(Json const& json, char const* key) {
  std::vector<std::pair<std::string, std::string>> result;
  auto const found = json.find(key);
  if (found == json.end() || !found->is_object()) return result;
  for (auto const& [name, value] : found->items())
    result.emplace_back(name, value.is_string() ? value.get<std::string>() : json_text(value));
  return result;
}

namespace {

std::optional<double> real_of(Json const& json) {
  double const value = number_of(json);
  return std::isnan(value) ? std::nullopt : std::optional(value);
}

/// A real number may be beyond what fits.
Index whole(Json const& value, std::string const& what) {
  bool const fits = value.is_number_unsigned() && value.get<std::uint64_t>() <= std::numeric_limits<Index>::max();
  if (!fits) throw Error(fmt::format("{} is no whole number from 0 on", what));
  return value.get<Index>();
}

std::size_t size_at(Json const& json, char const* key) { return static_cast<std::size_t>(whole_at(json, key)); }

std::vector<Index> wholes(Json const& list, char const* what) {
  return mapped(list, [&](Json const& each) { return whole(each, what); });
}

double real_or_nan(Json const& json, char const* key) { return real_at(json, key).value_or(std::nan("")); }

Json json_of(std::optional<double> const& value) { return value ? number(*value) : Json(nullptr); }

Json json_of(std::optional<Interval> const& interval) { return interval ? Json::array({interval->low, interval->high}) : Json(nullptr); }

std::optional<Interval> interval_of(Json const& json) {
  auto const found = json.find("interval");
  if (found == json.end() || !found->is_array() || found->size() != 2 || !(*found)[0].is_number() || !(*found)[1].is_number())
    return std::nullopt;
  return Interval{(*found)[0].get<double>(), (*found)[1].get<double>()};
}

Json json_of(KeyValues const& keys) {
  Json json = Json::object();
  for (auto const& [key, value] : keys) json[key] = value;
  return json;
}

// ---------------------------------------------------------------- arms

Json json_of(Comparison const& c) {
  return {{"mean", number(c.mean)},
          {"deviation", number(c.deviation)},
          {"interval", json_of(c.interval)},
          {"p", c.p},
          {"p_alone", c.p_alone},
          {"arms", c.arms},
          {"p_paired_t", json_of(c.p_t)},
          {"signed_ranks", c.ranked},
          {"effect", json_of(c.effect)},
          {"p_equivalence", json_of(c.p_equivalence)},
          {"e", json_of(c.e)},
          {"direction", c.direction},
          {"verdict", name(c.verdict)},
          {"seeds", c.seeds}};
}

Verdict verdict_of(std::string const& word) {
  for (auto const verdict : {Verdict::better, Verdict::worse, Verdict::equivalent, Verdict::identical, Verdict::unclear})
    if (name(verdict) == word) return verdict;
  throw Error(fmt::format("'{}' is no verdict", word));
}

Comparison comparison_of(Json const& json) {
  Comparison c;
  c.mean = real_or_nan(json, "mean");
  c.deviation = real_at(json, "deviation").value_or(0);
  c.interval = interval_of(json);
  c.p = json.value("p", 1.0);
  c.p_alone = json.value("p_alone", 1.0);
  c.p_t = real_at(json, "p_paired_t");
  c.ranked = json.value("signed_ranks", false);
  c.effect = real_at(json, "effect");
  c.p_equivalence = real_at(json, "p_equivalence");
  c.arms = json.value("arms", c.arms);
  c.e = real_at(json, "e");
  c.direction = json.value("direction", c.mean < 0 ? -1 : c.mean > 0 ? 1 : 0);
  c.verdict = verdict_of(json.value("verdict", "unclear"));
  c.seeds = size_at(json, "seeds");
  return c;
}

Json json_of(ArmResult const& arm) {
  Json json{{"name", arm.name}, {"keys", json_of(arm.keys)}, {"folders", arm.folders}, {"parameters", arm.parameters}};
  json["values"] = Json::object();
  for (auto const& [seed, value] : arm.values) json["values"][std::to_string(seed)] = number(value);
  json["diverged"] = arm.diverged;
  if (auto const& estimate = arm.estimate) {
    json["mean"] = number(estimate->mean);
    json["deviation"] = number(estimate->deviation);
    json["interval"] = json_of(estimate->interval);
    json["interval_method"] = estimate->method;
  }
  if (arm.difference) json["difference"] = json_of(*arm.difference);
  if (arm.memory) json["memory.peak"] = number(*arm.memory);
  if (arm.seconds) json["time.seconds"] = number(*arm.seconds);
  if (arm.tokens_per_second) json["time.tokens_per_second"] = number(*arm.tokens_per_second);
  if (!arm.tuned.empty()) json["tuned"] = json_of(arm.tuned);
  return json;
}

ArmResult arm_of(Json const& json) {
  ArmResult arm;
  arm.name = json.at("name").get<std::string>();
  arm.keys = texts_at(json, "keys");
  arm.tuned = texts_at(json, "tuned");
  arm.folders = json.value("folders", arm.folders);
  auto const values = json.value("values", Json::object());
  for (auto const& [seed, value] : values.items()) {
    auto const key = parsed_number<Index>(seed);
    if (!key) throw Error(fmt::format("its values are of '{}', which is no seed", seed));
    if (double const each = number_of(value); !std::isnan(each)) arm.values[*key] = each;
  }
  arm.diverged = wholes(json.value("diverged", Json::array()), "diverged");
  if (auto const mean = real_at(json, "mean"))
    arm.estimate = Estimate{.count = arm.values.size(),
                            .mean = *mean,
                            .deviation = real_at(json, "deviation").value_or(0),
                            .interval = interval_of(json),
                            .method = json.value("interval_method", "none")};
  read_costs(json, arm);
  if (auto const found = json.find("difference"); found != json.end() && found->is_object()) arm.difference = comparison_of(*found);
  return arm;
}

// ---------------------------------------------------------------- what they say together

Json json_of(Effect const& effect) {
  auto const& c = effect.comparison;
  return {{"name", effect.name},
          {"interaction", effect.interaction},
          {"mean", number(c.mean)},
          {"interval", json_of(c.interval)},
          {"p", c.p},
          {"seeds", c.seeds},
          {"averaged", effect.averaged},
          {"combinations", effect.combinations}};
}

Effect effect_of(Json const& json) {
  return {json.value("name", ""),    json.value("interaction", false), comparison_of(json), "",
          size_at(json, "averaged"), size_at(json, "combinations")};
}

Json json_of(Trend const& trend) {
  return {{"key", trend.key},
          {"elsewhere", trend.elsewhere},
          {"values", trend.values},
          {"seeds", trend.correlation.count},
          {"spearman", number(trend.correlation.mean)},
          {"p", trend.p},
          {"interval", json_of(trend.correlation.interval)}};
}

Trend trend_of(Json const& json) {
  return {.key = json.value("key", ""),
          .elsewhere = json.value("elsewhere", ""),
          .values = size_at(json, "values"),
          .correlation = {.count = size_at(json, "seeds"), .mean = real_or_nan(json, "spearman"), .interval = interval_of(json)},
          .p = json.value("p", 1.0),
          .sentence = ""};
}

Json json_of(Published const& published) { return {{"name", published.name}, {"curve", published.curve}, {"value", published.value}}; }

Published published_of(Json const& json) {
  return {json.value("name", ""), json.value("curve", Published().curve), json.value("value", 0.0)};
}

Json json_of(FailedTrial const& failure) {
  return {{"arm", failure.arm}, {"seed", failure.seed}, {"folder", failure.folder}, {"message", failure.message}, {"log", failure.log}};
}

FailedTrial failure_of(Json const& json) {
  return {json.value("arm", ""), whole_at(json, "seed"), json.value("folder", ""), json.value("message", ""),
          json.value("log", std::vector<std::string>{})};
}

template <class T>
Json list_of(std::vector<T> const& all) {
  return mapped(all, [](T const& each) { return json_of(each); });
}

Json json_of(TuningScores const& tuning) {
  Json json{{"seeds", tuning.seeds}, {"points", Json::array()}, {"arms", Json::array()}};
  for (auto const& point : tuning.points) json["points"].push_back({{"name", point.name}, {"keys", json_of(point.keys)}});
  for (auto const& arm : tuning.arms) {
    Json const values = mapped(arm.values, [](std::vector<double> const& at_point) { return mapped(at_point, number); });
    json["arms"].push_back({{"name", arm.name},
                            {"scores", list_of(arm.scores)},
                            {"values", values},
                            {"chosen", arm.chosen ? Json(*arm.chosen) : Json(nullptr)}});
  }
  return json;
}

TuningScores tuning_of(Json const& json) {
  TuningScores tuning;
  tuning.seeds = wholes(json.at("seeds"), "seeds");
  for (auto const& point : json.at("points")) tuning.points.push_back({point.at("name").get<std::string>(), texts_at(point, "keys")});
  for (auto const& each : json.at("arms")) {
    auto& arm = tuning.arms.emplace_back();
    arm.name = each.at("name").get<std::string>();
    arm.scores = mapped(each.at("scores"), real_of);
    arm.values = mapped(each.at("values"), [](Json const& values) { return mapped(values, number_of); });
    if (auto const& chosen = each.at("chosen"); chosen.is_number_unsigned()) arm.chosen = chosen.get<std::size_t>();
    if (arm.scores.size() != tuning.points.size() || arm.values.size() != tuning.points.size() ||
        arm.chosen.value_or(0) >= tuning.points.size())
      throw Error(fmt::format("the tuning of '{}' does not fit the points of its grid", arm.name));
  }
  return tuning;
}

template <class T>
std::vector<T> read_list(Json const& json, char const* key, T (*read)(Json const&)) {
  return mapped(json.value(key, Json::array()), read);
}

}  // namespace

std::optional<double> real_at(Json const& json, char const* key) {
  auto const found = json.find(key);
  return found == json.end() ? std::nullopt : real_of(*found);
}

Index whole_at(Json const& json, char const* key) { return json.contains(key) ? whole(json.at(key), key) : 0; }

void read_costs(Json const& json, ArmResult& arm) {
  arm.parameters = whole_at(json, "parameters");
  arm.seconds = real_at(json, "time.seconds");
  arm.tokens_per_second = real_at(json, "time.tokens_per_second");
  arm.memory = real_at(json, "memory.peak");
}

Json json_of(AblationResult const& result, Json const& environment) {
  Json json{{"ablation", result.name},
            {"metric", result.metric},
            {"better", result.better},
            {"at", result.at},
            {"unit", result.unit},
            {"margin", result.margin > 0 ? Json(result.margin) : Json(nullptr)},
            {"seeds", result.seeds},
            {"baseline", result.baseline},
            {"varied", result.varied},
            {"steps", result.steps},
            {"arms", list_of(result.arms)},
            {"failures", list_of(result.failures)},
            {"missing", Json::array()},
            {"trials_done", result.trials_done},
            {"trials_of", result.trials_of},
            {"trials", result.trials},
            {"effects", list_of(result.effects)},
            {"trends", list_of(result.trends)},
            {"sentences", result.sentences},
            {"warnings", result.warnings},
            {"environment", environment},
            {"configuration", result.configuration}};
  for (auto const& [arm, seed] : result.missing) json["missing"].push_back({{"arm", arm}, {"seed", seed}});
  if (result.tuning) json["tuning"] = json_of(*result.tuning);
  if (!result.published.empty()) json["published"] = list_of(result.published);
  return json;
}

AblationResult ablation_result_of(Json const& json) {
  AblationResult result;
  result.name = json.at("ablation").get<std::string>();
  result.metric = json.at("metric").get<std::string>();
  result.better = json.value("better", result.better);
  result.at = json.value("at", result.at);
  result.unit = json.value("unit", "");
  result.margin = real_at(json, "margin").value_or(0);
  result.seeds = wholes(json.at("seeds"), "seeds");
  result.baseline = json.value("baseline", "");
  result.varied = json.value("varied", result.varied);
  result.steps = whole_at(json, "steps");
  for (auto const& arm : json.at("arms")) result.arms.push_back(arm_of(arm));
  result.failures = read_list(json, "failures", failure_of);
  for (auto const& missing : json.value("missing", Json::array()))
    result.missing.emplace_back(missing.value("arm", ""), whole_at(missing, "seed"));
  result.trials_done = size_at(json, "trials_done");
  result.trials_of = json.contains("trials_of") ? size_at(json, "trials_of") : result.trials_done;
  result.trials = json.value("trials", result.trials);
  result.effects = read_list(json, "effects", effect_of);
  result.trends = read_list(json, "trends", trend_of);
  result.sentences = json.value("sentences", result.sentences);
  result.warnings = json.value("warnings", result.warnings);
  result.configuration = json.value("configuration", "");
  if (auto const tuning = json.find("tuning"); tuning != json.end() && tuning->is_object()) result.tuning = tuning_of(*tuning);
  result.published = read_list(json, "published", published_of);
  return result;
}

}  // namespace heed
