#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "experiments/judge/judge.hpp"
#include "experiments/metric/evidence.hpp"
#include "experiments/program/system.hpp"

namespace heed {

using Json = nlohmann::ordered_json;

Judgement judgement_of(AblationResult const& result, ArmResult const& candidate) {
  ArmResult const& base = *result.baseline_arm();
  Judgement judgement;
  judgement.base = base.name;
  judgement.candidate = candidate.name;
  judgement.unit = result.unit;
  judgement.differences = result.differences(candidate);
  judgement.comparison = *candidate.difference;
  judgement.question = {.better = result.better == "higher" ? Better::higher : Better::lower, .margin = result.margin};
  judgement.base_deviation = base.estimate ? base.estimate->deviation : 0;
  auto const& c = judgement.comparison;
  if (auto const told = difference_told(c.seeds); told && c.deviation > 0 && std::isfinite(c.deviation))
    judgement.told = *told * c.deviation;
  double const bound = static_cast<double>(c.arms) / judgement.question.significance();
  if (c.e && c.verdict == Verdict::unclear) judgement.enough = pairs_that_tell(judgement.differences, bound);
  judgement.seconds_a_pair = base.seconds.value_or(0) + candidate.seconds.value_or(0);
  return judgement;
}

std::string in_words(Judgement const& judgement) {
  auto const& c = judgement.comparison;
  auto const size = [&](double value) { return measured(value, {}, judgement.unit); };
  auto text = fmt::format("noise: {} varies by {} over seeds (standard deviation)", judgement.base, size(judgement.base_deviation));
  if (judgement.told) text += fmt::format("; {} pairs tell a difference of {} with 80 % power", c.seeds, size(*judgement.told));
  text += "\n";
  if (!c.e || c.verdict != Verdict::unclear) return text;
  if (!judgement.enough || *judgement.enough <= c.seeds)
    return text + (c.seeds < 3 ? "more pairs: three are needed to say how many would tell\n"
                               : "no number of pairs up to 1,000 is expected to tell these apart\n");
  auto const more = *judgement.enough - c.seeds;
  text += fmt::format("about {} would tell", plural(more, "more pair"));
  if (judgement.seconds_a_pair > 0)
    text += fmt::format(" ({} one after another)", clock_time(judgement.seconds_a_pair * static_cast<double>(more)));
  return text + "\n";
}

Json json_of(Judgement const& judgement) {
  auto const& c = judgement.comparison;
  auto const end = [](double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); };
  auto const optional = [](auto const& value) { return value ? Json(*value) : Json(nullptr); };
  auto const verdict = c.verdict == Verdict::identical ? Verdict::equivalent : c.verdict;
  Json json{{"base", judgement.base}, {"candidate", judgement.candidate}, {"difference", end(c.mean)}};
  json["interval"] = c.interval ? Json::array({end(c.interval->low), end(c.interval->high)}) : Json::array({nullptr, nullptr});
  json["e"] = optional(c.e);
  json["p"] = c.p;
  json["verdict"] = name(verdict);
  json["pairs"] = c.seeds;
  json["pairs_that_tell"] = optional(judgement.enough);
  json["noise_floor"] = {{"deviation", end(judgement.base_deviation)}, {"difference_told", optional(judgement.told)}};
  return json;
}

Exit exit_of(Verdict verdict) {
  if (verdict == Verdict::better) return Exit::better;
  if (verdict == Verdict::worse) return Exit::worse;
  return verdict == Verdict::unclear ? Exit::unclear : Exit::equivalent;
}

}  // namespace heed
