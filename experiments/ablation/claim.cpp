// A claim's settings, their checks against the file, and registrations.

#include "experiments/ablation/claim.hpp"

#include <array>
#include <cmath>
#include <ctime>
#include <limits>
#include <tuple>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "experiments/ablation/plan.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/config/table.hpp"
#include "experiments/folder/folder.hpp"
#include "experiments/folder/result_file.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/json.hpp"
#include "nn/files/sha256.hpp"

namespace heed {

namespace {

constexpr char const* aside = "finished_aside";  // in claim.json: trials or cells that had ended in folders that were put aside

/// As they are registered.
std::string criteria_in_words(ClaimSettings const& claim) {
  return fmt::format("{}", fmt::join(mapped(claim.criteria.items, [](Criterion const& each) { return each.in_words(); }), "; "));
}

std::string hash_of(std::string const& criteria, std::vector<std::string> const& trials) {
  return sha256(fmt::format("{}\n{}\n", criteria, fmt::join(trials, "\n")));
}

/// How many trials or cells have ended in the folder that holds theirs.
std::size_t ended_in(fs::path const& folder) {
  std::size_t ended = 0;
  std::error_code missing;
  for (auto const& entry : fs::directory_iterator(folder, missing))
    if (fs::exists(entry.path() / "summary.json", missing)) ++ended;
  return ended;
}

}  // namespace

std::vector<Field> PublishedFigure::fields() {
  return {field(&value, "value", "the published number"), field(&seeds, "seeds", "over how many seeds").in(1, 1e6),
          field(&selection, "selection", "how it was selected: best of 3; empty: a mean")};
}

std::vector<Field> Criterion::fields() {
  return {field(&kind, "kind", "the statistic")
              .one_of({"value", "difference", "share", "slope", "exponent", "spearman", "equivalence", "formula", "best_exponent"}),
          field(&arm, "arm", "the arm"),
          field(&from, "from", "of difference and equivalence: the arm that is subtracted"),
          field(&key, "key", "of slope, exponent and spearman: the varied key, or the study's column, whose numbers are x"),
          field(&best, "best", "of best_exponent: the varied key whose number in the best arm is y"),
          field(&where, "where", "of a study: the rows of results.csv, [quantity=entropy, keys=64]; over a key: arms, [model.width=64]"),
          field(&at_least, "at_least", "the claim holds if the whole interval is at or above this"),
          field(&at_most, "at_most", "likewise at or below this"),
          field(&reaches, "reaches", "of share: the value that a seed must reach"),
          field(&below, "below", "of share: true counts seeds at or below `reaches`"),
          field(&margin, "margin", "of equivalence: the largest difference that does not matter").above(0),
          field(&within, "within", "of formula: standard errors").above(0)};
}

std::optional<std::string> Criterion::contradiction() {
  if (kind.empty()) return "kind: is missing";
  bool const pair = kind == "difference" || kind == "equivalence", formula = kind == "formula";
  bool const selects = !where.empty();
  if (selects && (pair || kind == "share")) return fmt::format("where: is not used by {}", kind);
  using NeededKey = std::tuple<char const*, bool, bool>;
  for (auto const& [name, given, needed] :
       {NeededKey{"key", !key.empty(), over_key()}, NeededKey{"arm", !arm.empty(), !over_key() && !selects},
        NeededKey{"from", !from.empty(), pair}, NeededKey{"best", !best.empty(), kind == "best_exponent"},
        NeededKey{"reaches", reaches.has_value(), kind == "share"}, NeededKey{"margin", margin.has_value(), kind == "equivalence"},
        NeededKey{"within", within.has_value(), formula}})
    if (given != needed) return fmt::format("{}: is {} by {}", name, needed ? "needed" : "not used", kind);
  if (below && kind != "share") return fmt::format("below: is not used by {}", kind);
  if (formula && !selects) return "where: is needed by formula";
  for (auto const& condition : where)
    if (condition.find('=') == condition.npos) return fmt::format("where: wants column=value, found '{}'", condition);
  if (at_least && at_most && *at_least > *at_most) return "at_least: is above at_most";
  if ((formula || margin) == (at_least || at_most))
    return "at_least: give at_least or at_most, or both; of equivalence the margin alone, of formula within alone";
  return std::nullopt;
}

Interval Criterion::bounds() const {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  if (margin) return {-*margin, *margin};
  if (within) return {-infinite, *within};
  return {at_least.value_or(-infinite), at_most.value_or(infinite)};
}

std::string Criterion::in_words(std::string const& metric) const {
  auto const rows = fmt::format("{}", fmt::join(where, ", "));
  if (within) return fmt::format("{} within {} standard errors of the formula", rows, *within);
  std::string of = !best.empty()     ? fmt::format("exponent of the best {} over {}", last_word(best), key)
                   : over_key()      ? fmt::format("{} over {}", kind, key)
                   : !where.empty()  ? kind
                   : !from.empty()   ? fmt::format("difference of {} and {}", arm, from)
                   : kind == "share" ? fmt::format("share of seeds of {} that {} {}", arm, below ? "are at most" : "reach", *reaches)
                                     : fmt::format("{} of {}", metric.empty() ? kind : metric, arm);
  if (!metric.empty() && kind != "value") of = fmt::format("{}, {}", metric, of);
  if (!where.empty()) of += fmt::format(" ({})", rows);
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
          field(&cost, "cost", "expected time on two cores, 90s, 30m or 2h: for heed claims --within where it cannot be planned"),
          field(&deviations, "deviations", "from the published set-up")};
}

std::optional<std::string> ClaimSettings::contradiction() {
  bool const anything = !source.empty() || !criteria.items.empty();
  if (says.empty() && anything) return "says: is missing";
  if (!says.empty() && source.empty()) return "source: is missing";
  if (!says.empty() && criteria.items.empty()) return "criteria: are missing";
  return std::nullopt;
}

std::string name(ClaimVerdict verdict) {
  static constexpr std::array names{"holds", "fails", "unclear"};
  return at(names, verdict);
}

std::string CriterionFinding::in_words() const {
  if (std::isnan(value)) return "–";
  return interval ? fmt::format("{:.4g} [{:.4g}, {:.4g}]", value, interval->low, interval->high) : fmt::format("{:.4g}", value);
}

std::string CriterionFinding::verdict_in_words() const {
  return name(verdict) + (seeds ? fmt::format(" ({} seeds would tell)", *seeds) : "") + (remark.empty() ? "" : "; " + remark);
}

void check_claim(Document const& file, ClaimSettings const& claim) {
  for (std::size_t i = 0; i < claim.criteria.items.size(); ++i) {
    auto const& criterion = claim.criteria.items[i];
    auto const location = location_of(file, fmt::format("claim.criteria.{}", i));
    if (criterion.where.empty()) throw ConfigError(location, "where: is needed in a study: the rows of results.csv");
    if (criterion.kind == "spearman" || !criterion.best.empty()) throw ConfigError(location, criterion.kind + " is of an ablation");
  }
}

Registration registration_of(Ablation const& ablation) {
  auto const& settings = ablation.settings;
  auto const better = settings.better ? ", " + *settings.better : "";
  Registration registration{fmt::format("{} ({}{})", settings.metric, settings.at, better), {}, ablation.trials_folder()};
  for (auto const& arm : ablation.arms)
    for (Index const seed : ablation.seeds) registration.trials.push_back(trial_of(ablation, arm.name, arm.changes, seed).settings.name);
  return registration;
}

std::string changed_since_registration(fs::path const& folder, ClaimSettings const& claim, Registration const& now) {
  auto const json = find_json(folder / "claim.json");
  if (!json || !json->contains("registrations") || json->at("registrations").empty()) return "nothing was";
  auto const& last = json->at("registrations").back();
  auto const criteria = last.value("criteria", "");
  std::vector<std::string> changed;
  if (criteria != criteria_in_words(claim)) changed.emplace_back("criteria");
  if (last.value("metric", now.metric) != now.metric) changed.emplace_back("metric");
  if (last.value("sha256", "") != hash_of(criteria, now.trials)) changed.emplace_back(now.metric.empty() ? "configuration" : "trials");
  return listed(changed);
}

bool register_claim(fs::path const& folder, ClaimSettings const& claim, Registration const& now) {
  auto const changed = claim.given() ? changed_since_registration(folder, claim, now) : "";
  if (changed.empty()) return false;
  auto const path = folder / "claim.json";
  auto json = find_json(path).value_or(nlohmann::ordered_json::object());
  auto const criteria = criteria_in_words(claim);
  auto const time = fmt::format("{:%Y-%m-%d %H:%M}", fmt::gmtime(std::time(nullptr)));
  nlohmann::ordered_json entry{{"time", time}, {"sha256", hash_of(criteria, now.trials)}, {"criteria", criteria}, {"metric", now.metric}};
  if (!json["registrations"].empty()) entry["changed"] = changed;
  if (!now.metric.empty()) entry["trials"] = now.trials.size();
  entry["finished"] = ended_in(now.done) + json.value(aside, std::size_t{0});
  json["registrations"].push_back(entry);
  fs::create_directories(folder);
  write_atomically(path, json_text(json, 1) + "\n");
  return true;
}

void put_registered_aside(fs::path const& folder, fs::path const& done) {
  auto json = find_json(folder / "claim.json");
  if (json) (*json)[aside] = ended_in(done) + json->value(aside, std::size_t{0});
  put_aside(folder);
  if (!json) return;
  fs::create_directories(folder);
  write_atomically(folder / "claim.json", json_text(*json, 1) + "\n");
}

std::vector<std::string> registrations_in(fs::path const& folder) {
  auto const json = find_json(folder / "claim.json");
  std::vector<std::string> words;
  if (!json || !json->contains("registrations")) return words;
  for (auto const& each : (*json)["registrations"]) {
    auto const finished = each.value("finished", std::size_t{0});
    auto const changed = each.value("changed", "");
    std::string const what = each.value("metric", "of an ablation").empty() ? "cell" : "trial";
    words.push_back(fmt::format("{} {} ({}sha256 {}), {} had ended", words.empty() ? "registered" : "amended", each.value("time", ""),
                                changed.empty() ? "" : changed + "; ", each.value("sha256", "").substr(0, 12),
                                finished == 0 ? "before any " + what : "when " + plural(finished, what)));
  }
  return words;
}

std::vector<std::string> claim_in_words(ClaimSettings const& claim, ClaimFinding const& finding, std::filesystem::path const& folder) {
  std::vector<std::string> sentences{fmt::format("claim: {} ({}): {}{}", claim.says, claim.source, name(finding.verdict),
                                                 finding.incomplete.empty() ? "" : "; " + finding.incomplete)};
  for (std::size_t i = 0; i < finding.criteria.size(); ++i) {
    auto const& each = finding.criteria[i];
    sentences.push_back(
        fmt::format("{}: {}: {}", claim.criteria.items[i].in_words(finding.metric), each.in_words(), each.verdict_in_words()));
  }
  for (auto const& registration : registrations_in(folder)) sentences.push_back(registration);
  return sentences;
}

}  // namespace heed
