#include "experiments/ablation/claim.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>
#include <span>

#include <boost/math/distributions/students_t.hpp>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/error.hpp"
#include "experiments/ablation/plan.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/folder/result_file.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/json.hpp"
#include "nn/files/number.hpp"
#include "nn/files/sha256.hpp"

namespace heed {

namespace {

constexpr double confidence = 0.95, power = 0.8;
constexpr Index most_seeds = 10'000;

double t_quantile(double share, double freedom) { return quantile(boost::math::students_t(freedom), share); }

ArmResult const& arm_of(AblationResult const& result, std::string const& name) {
  auto const found = std::ranges::find(result.arms, name, &ArmResult::name);
  if (found != result.arms.end()) return *found;
  std::vector<std::string> names;
  for (auto const& arm : result.arms) names.push_back(arm.name);
  throw Error(fmt::format("claim.criteria: there is no arm '{}'{}", name, did_you_mean(name, names)));
}

/// Average ranks, from 1.
std::vector<double> ranks_of_values(std::vector<double> const& values) {
  std::vector<double> ranks;
  for (double const value : values)
    ranks.push_back(static_cast<double>(std::ranges::count_if(values, [&](double other) { return other < value; })) +
                    (static_cast<double>(std::ranges::count(values, value)) + 1) / 2);
  return ranks;
}

/// Least squares of y over x: its slope, or the correlation.
double slope_of(std::vector<double> const& x, std::vector<double> const& y, bool correlation) {
  double const n = static_cast<double>(x.size());
  double mx = 0, my = 0, xx = 0, xy = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) mx += x[i] / n, my += y[i] / n;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mx) * (x[i] - mx), xy += (x[i] - mx) * (y[i] - my), yy += (y[i] - my) * (y[i] - my);
  }
  return correlation ? (yy == 0 ? 0 : xy / std::sqrt(xx * yy)) : xy / xx;
}

/// The statistic of slope, exponent and spearman by seed, over the arms in which the key is a number.
std::vector<double> trends_by_seed(Criterion const& criterion, AblationResult const& result) {
  std::map<Index, std::pair<std::vector<double>, std::vector<double>>> points;
  for (auto const& arm : result.arms) {
    auto const key = std::ranges::find_if(
        arm.keys, [&](auto const& each) { return each.first == criterion.key || last_word(each.first) == last_word(criterion.key); });
    auto const x = key == arm.keys.end() ? std::nullopt : parsed_number<double>(key->second);
    if (!x) throw Error(fmt::format("claim.criteria: arm '{}' has no number for the key {}", arm.name, criterion.key));
    for (auto const& [seed, value] : arm.values) points[seed].first.push_back(*x), points[seed].second.push_back(value);
  }
  std::vector<double> statistics;
  for (auto& [seed, of] : points) {
    auto& [x, y] = of;
    if (x.size() < result.arms.size()) continue;
    if (criterion.kind == "exponent")
      for (auto* const list : {&x, &y})
        for (double& value : *list) value = std::log(value);
    bool const ranked = criterion.kind == "spearman";
    statistics.push_back(ranked ? slope_of(ranks_of_values(x), ranks_of_values(y), true) : slope_of(x, y, false));
  }
  return statistics;
}

std::vector<double> statistics_of(Criterion const& criterion, AblationResult const& result) {
  if (criterion.kind == "slope" || criterion.kind == "exponent" || criterion.kind == "spearman") return trends_by_seed(criterion, result);
  auto const& values = arm_of(result, criterion.arm).values;
  std::vector<double> statistics;
  for (auto const& [seed, value] : values) {
    if (criterion.kind == "value" || criterion.kind == "share") {
      statistics.push_back(value);
    } else {
      auto const& others = arm_of(result, criterion.from).values;
      if (auto const other = others.find(seed); other != others.end()) statistics.push_back(value - other->second);
    }
  }
  return statistics;
}

/// Wilson's interval of a share of n.
Interval wilson(double share, double n) {
  constexpr double z = 1.959963984540054;
  double const middle = share + z * z / (2 * n), half = z * std::sqrt(share * (1 - share) / n + z * z / (4 * n * n));
  return {(middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)};
}

/// Where the interval lies: all in the bounds, all outside of one, or across.
std::string verdict_of(Interval const& interval, double low, double high) {
  if (interval.low >= low && interval.high <= high) return "holds";
  return interval.high < low || interval.low > high ? "fails" : "unclear";
}

/// The fewest seeds with which an interval of this spread excludes a bound at this distance with 80 % power.
std::optional<Index> seeds_for(double distance, double deviation, std::size_t have) {
  for (auto n = static_cast<Index>(have) + 1; n <= most_seeds; n += std::max<Index>(1, n / 50)) {
    auto const freedom = static_cast<double>(n - 1);
    double const needed = (t_quantile(0.5 + confidence / 2, freedom) + t_quantile(power, freedom)) * deviation;
    if (needed / std::sqrt(static_cast<double>(n)) <= distance) return n;
  }
  return std::nullopt;
}

double bound_distance(double value, double low, double high) { return std::min(std::abs(value - low), std::abs(value - high)); }

std::string number_or_none(std::optional<Interval> const& interval) {
  return interval ? fmt::format(" [{:.4g}, {:.4g}]", interval->low, interval->high) : "";
}

std::string today() { return fmt::format("{:%Y-%m-%d %H:%M}", fmt::gmtime(std::time(nullptr))); }

}  // namespace

std::vector<Field> PublishedFigure::fields() {
  return {field(&value, "value", "the published number"), field(&seeds, "seeds", "over how many seeds").in(1, 1e6),
          field(&selection, "selection", "how it was selected: best of 3; empty: a mean")};
}

std::vector<Field> Criterion::fields() {
  return {field(&kind, "kind", "the statistic").one_of({"value", "difference", "share", "slope", "exponent", "spearman", "equivalence"}),
          field(&arm, "arm", "the arm"),
          field(&from, "from", "of difference and equivalence: the arm that is subtracted"),
          field(&key, "key", "of slope, exponent and spearman: the varied key whose numbers are x"),
          field(&at_least, "at_least", "the claim holds if the whole interval is at or above this"),
          field(&at_most, "at_most", "likewise at or below this"),
          field(&reaches, "reaches", "of share: the value that a seed must reach"),
          field(&below, "below", "of share: true counts seeds at or below `reaches`"),
          field(&margin, "margin", "of equivalence: the largest difference that does not matter").above(0)};
}

std::optional<std::string> Criterion::contradiction() {
  bool const trend = kind == "slope" || kind == "exponent" || kind == "spearman", pair = kind == "difference" || kind == "equivalence";
  if (kind.empty()) return "kind: is missing";
  if (trend ? key.empty() : arm.empty()) return fmt::format("{}: is needed by {}", trend ? "key" : "arm", kind);
  if (trend ? !arm.empty() : !key.empty()) return fmt::format("{}: is not used by {}", trend ? "arm" : "key", kind);
  if (pair == from.empty()) return fmt::format("from: {} by {}", pair ? "is needed" : "is not used", kind);
  if ((kind == "share") != reaches.has_value())
    return fmt::format("reaches: {} by {}", kind == "share" ? "is needed" : "is not used", kind);
  if (below && kind != "share") return fmt::format("below: is not used by {}", kind);
  if ((kind == "equivalence") != margin.has_value())
    return fmt::format("margin: {} by {}", kind == "equivalence" ? "is needed" : "is not used", kind);
  if ((kind == "equivalence") == (at_least || at_most))
    return "at_least: give at_least or at_most, or both; of equivalence the margin alone";
  return std::nullopt;
}

std::string Criterion::in_words() const {
  std::string const of = !key.empty()      ? fmt::format("{} over {}", kind, key)
                         : !from.empty()   ? fmt::format("difference of {} and {}", arm, from)
                         : kind == "share" ? fmt::format("share of seeds of {} that {} {}", arm, below ? "are at most" : "reach", *reaches)
                                           : fmt::format("{} of {}", kind, arm);
  if (margin) return fmt::format("{} within ± {}", of, *margin);
  if (at_least && at_most) return fmt::format("{} between {} and {}", of, *at_least, *at_most);
  return at_least ? fmt::format("{} at least {}", of, *at_least) : fmt::format("{} at most {}", of, *at_most);
}

std::vector<Field> ClaimSettings::fields() {
  return {field(&says, "says", "the claim in a sentence"),
          field(&source, "source", "author, year, number of the paper"),
          field(&published, "published", "the number that the source gives"),
          field(&criteria, "criteria", "all must hold; each follows from its interval alone"),
          field(&predicts, "predicts", "what the source makes one expect here"),
          field(&cost, "cost", "measured time, with the machine"),
          field(&deviations, "deviations", "from the published set-up")};
}

std::optional<std::string> ClaimSettings::contradiction() {
  bool const anything = !source.empty() || !criteria.items.empty();
  if (says.empty() && anything) return "says: is missing";
  if (!says.empty() && source.empty()) return "source: is missing";
  if (!says.empty() && criteria.items.empty()) return "criteria: are missing";
  return std::nullopt;
}

ClaimFinding finding_of(Criterion const& criterion, AblationResult const& result) {
  auto const values = statistics_of(criterion, result);
  constexpr double infinite = std::numeric_limits<double>::infinity();
  double const low = criterion.margin ? -*criterion.margin : criterion.at_least.value_or(-infinite);
  double const high = criterion.margin ? *criterion.margin : criterion.at_most.value_or(infinite);
  ClaimFinding finding{.value = std::nan(""), .interval = {}, .verdict = "unclear", .seeds = {}};
  if (values.empty()) return finding;
  auto const n = static_cast<double>(values.size());
  if (criterion.kind == "share") {
    auto const reached = [&](double value) { return criterion.below ? value <= *criterion.reaches : value >= *criterion.reaches; };
    finding.value = static_cast<double>(std::ranges::count_if(values, reached)) / n;
    finding.interval = wilson(finding.value, n);
    finding.verdict = verdict_of(*finding.interval, low, high);
    for (auto more = static_cast<Index>(values.size()); finding.verdict == "unclear" && more <= most_seeds && !finding.seeds; ++more)
      if (verdict_of(wilson(finding.value, static_cast<double>(more)), low, high) != "unclear") finding.seeds = more;
    return finding;
  }
  auto const whole = estimate(values, confidence);
  finding.value = whole.mean;
  if (!std::isfinite(whole.mean) || !std::isfinite(whole.deviation) || values.size() < 2) return finding;
  double const half = t_quantile(0.5 + confidence / 2, n - 1) * whole.deviation / std::sqrt(n);
  finding.interval = Interval{whole.mean - half, whole.mean + half};
  finding.verdict = verdict_of(*finding.interval, low, high);
  if (finding.verdict == "unclear") finding.seeds = seeds_for(bound_distance(whole.mean, low, high), whole.deviation, values.size());
  return finding;
}

ClaimVerdict verdict_of(ClaimSettings const& claim, AblationResult const& result) {
  ClaimVerdict verdict{.verdict = "holds", .findings = {}, .incomplete = ""};
  for (auto const& criterion : claim.criteria.items) {
    verdict.findings.push_back(finding_of(criterion, result));
    auto const& found = verdict.findings.back().verdict;
    if (found == "fails" || (found == "unclear" && verdict.verdict == "holds")) verdict.verdict = found;
  }
  auto const left = result.failures.size() + result.missing.size();
  if (left > 0)
    verdict.incomplete = fmt::format("{} of {} trials are missing or have failed", left, result.arms.size() * result.seeds.size());
  if (left > 0 && verdict.verdict == "holds") verdict.verdict = "unclear";
  return verdict;
}

void register_claim(Ablation const& ablation) {
  ClaimSettings claim = ablation.settings.claim;
  if (!claim.given()) return;
  auto const path = ablation.folder() / "claim.json";
  auto json = find_json(path).value_or(nlohmann::ordered_json{{"registrations", nlohmann::ordered_json::array()}});
  std::string const criteria = emit_line(*tree(claim).find("criteria"));
  std::string names;
  std::size_t trials = 0, finished = 0;
  for (auto const& arm : ablation.arms)
    for (Index const seed : ablation.seeds) names += trial_of(ablation, arm.name, arm.changes, seed).settings.name + "\n", ++trials;
  std::error_code missing;  // trials of an earlier set-up count: their results may be known
  for (auto const& entry : std::filesystem::directory_iterator(ablation.trials_folder(), missing))
    if (std::filesystem::exists(entry.path() / "summary.json", missing)) ++finished;
  std::string const text = criteria + "\n" + names, hash = sha256(std::as_bytes(std::span(text)));
  auto& all = json["registrations"];
  if (!all.empty() && all.back()["sha256"] == hash) return;
  all.push_back({{"time", today()}, {"sha256", hash}, {"criteria", criteria}, {"trials", trials}, {"finished", finished}});
  write_atomically(path, json_text(json, 1) + "\n");
}

std::vector<std::string> registrations_in(std::filesystem::path const& folder) {
  auto const json = find_json(folder / "claim.json");
  std::vector<std::string> words;
  if (!json || !json->contains("registrations")) return words;
  for (auto const& each : (*json)["registrations"]) {
    auto const finished = each.value("finished", std::size_t{0});
    words.push_back(fmt::format("{} {} (sha256 {}), {}", words.empty() ? "registered" : "amended", each.value("time", ""),
                                each.value("sha256", "").substr(0, 12),
                                finished == 0 ? "before any trial had ended" : fmt::format("when {} trials had ended", finished)));
  }
  return words;
}

std::vector<std::string> claim_in_words(Ablation const& ablation, AblationResult const& result) {
  auto const& claim = ablation.settings.claim;
  if (!claim.given()) return {};
  auto const verdict = verdict_of(claim, result);
  std::vector<std::string> sentences{fmt::format("claim: {} ({}): {}{}", claim.says, claim.source, verdict.verdict,
                                                 verdict.incomplete.empty() ? "" : "; " + verdict.incomplete)};
  for (std::size_t i = 0; i < verdict.findings.size(); ++i) {
    auto const& finding = verdict.findings[i];
    sentences.push_back(fmt::format("{}: {:.4g}{}: {}{}", claim.criteria.items[i].in_words(), finding.value,
                                    number_or_none(finding.interval), finding.verdict,
                                    finding.seeds ? fmt::format("; {} seeds would tell", *finding.seeds) : ""));
  }
  for (auto const& registration : registrations_in(ablation.folder())) sentences.push_back(registration);
  return sentences;
}

}  // namespace heed
