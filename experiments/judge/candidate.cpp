#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "experiments/ablation/ablation.hpp"
#include "experiments/ablation/arms.hpp"
#include "experiments/folder/folder.hpp"
#include "experiments/folder/record.hpp"
#include "experiments/judge/judge.hpp"
#include "experiments/metric/evidence.hpp"
#include "experiments/program/system.hpp"
#include "experiments/train/weights.hpp"
#include "nn/files/json.hpp"
#include "nn/files/sha256.hpp"

namespace heed {

using Json = nlohmann::ordered_json;

namespace {

constexpr Index most_pairs = 40;  ///< unless more are asked for

Yaml map_of(std::vector<Yaml::Entry> entries) {
  Yaml map;
  map.kind = Yaml::NodeKind::map;
  map.entries = std::move(entries);
  return map;
}

/// Of two configurations the smallest parts that differ, with the second's values: a section of another kind is one part.
void add_changes(Yaml const& from, Yaml const& to, std::string const& section, std::vector<Yaml::Entry>& changes) {
  for (auto const& entry : to.entries) {
    Yaml const* const before = from.inside(entry.key);
    auto const path = dotted(section, entry.key);
    if (path == "name" || path == "seed" || (before != nullptr && emit_line(*before) == emit_line(entry.value))) continue;
    auto const keys = [](Yaml const& value) { return mapped(value.entries, &Yaml::Entry::key); };
    bool const alike = before != nullptr && entry.value.kind == Yaml::NodeKind::map && keys(*before) == keys(entry.value);
    auto const kind = [](Yaml const& value) { return value.inside("kind") != nullptr ? value.inside("kind")->text : ""; };
    if (alike && kind(*before) == kind(entry.value))
      add_changes(*before, entry.value, path, changes);
    else
      changes.push_back({path, entry.location, entry.value});
  }
}

Yaml whole(Document const& document) {
  Experiment settings;
  fill(document, settings);
  return tree(settings);
}

std::string hash_of(Document document) {
  assign(document, "seed", Yaml::scalar("1"));
  return sha256(full_configuration(std::move(document), {}));
}

/// "position=rotary, heads=2": an arm's name for changes of these keys.
std::string name_of(std::vector<std::string> const& changes) {
  std::string name;
  for (auto const& change : changes) {
    auto const equals = change.find('=');
    name += (name.empty() ? "" : ", ") + last_word(change.substr(0, equals)) + change.substr(equals);
  }
  std::ranges::replace(name, '/', '-');
  return name.size() <= max_label ? name : cut_label(file_label(name));
}

/// Base and candidate; their names go into the entry.
std::pair<Document, Document> asked(std::vector<std::string> const& what, Folders folders, LedgerEntry& entry) {
  auto const is_change = [](std::string const& word) { return word.find('=') != word.npos; };
  auto const first = std::ranges::find_if(what, is_change);
  std::vector<std::string> const files(what.begin(), first), changes(first, what.end());
  if (files.empty() || files.size() > 2 || !std::ranges::all_of(changes, is_change))
    throw ConfigError("judge",
                      "wants a base, then a candidate's file or changed keys: heed judge BASE.yaml [CANDIDATE.yaml] key.path=value …");
  Document base = load(files.front()), candidate = load(files.back());
  if (is_ablation(base)) throw ConfigError(files.front(), "is an ablation: judge compares runs (heed run trains an ablation)");
  for (auto const& change : changes) {
    assign(candidate, change);
    if (files.size() == 2) assign(base, change);
  }
  for (Document* const document : {&base, &candidate}) {
    folders.config_folder = fs::absolute(document->file).parent_path();
    inherit_model(*document, folders);
  }
  entry.base_name = base.file.stem().string();
  entry.name = files.size() == 2 ? candidate.file.stem().string() : name_of(changes);
  if (entry.name == entry.base_name) entry.name += " (candidate)";
  return {std::move(base), std::move(candidate)};
}

/// Base and candidate as an ablation whose seeds are given out until there is a verdict.
Ablation as_ablation(JudgeOptions const& options, LedgerEntry& entry) {
  auto const [base, candidate] = asked(options.what, options.folders, entry);
  entry.base = hash_of(base);
  entry.candidate = hash_of(candidate);
  if (entry.base == entry.candidate) throw ConfigError("judge", "base and candidate are one configuration: there is nothing to compare");
  std::vector<Yaml::Entry> changes;
  add_changes(whole(base), whole(candidate), "", changes);
  Document file{base.file, map_of({{"base", {}, base.root},
                                   {"add", {}, map_of({{entry.base_name, {}, map_of({})}, {entry.name, {}, map_of(changes)}})}})};
  auto const set = [&](char const* key, std::string const& value) { assign(file, key, Yaml::scalar(value, true)); };
  set("ablation", fmt::format("judge-{}-{}/{}-{}", file_label(entry.base_name), entry.base.substr(0, 8), folder_label(entry.name),
                              entry.candidate.substr(0, 8)));
  set("baseline", entry.base_name);
  set("trials", "..");
  assign(file, fmt::format("seeds={}", std::max(most_pairs, options.pairs.value_or(0))));
  assign(file, fmt::format("until_verdict={}", options.pairs.value_or(1)));
  if (options.table.metric) set("metric", *options.table.metric);
  if (options.margin) assign(file, fmt::format("margin={}", *options.margin));
  if (options.lower || options.higher) set("better", options.lower ? "lower" : "higher");
  return load_ablation(std::move(file), {}, options.folders);
}

Exit answer(JudgeOptions const& options, Material const& result, LedgerEntry entry, double seconds) {
  auto const candidate = std::ranges::find_if(result.arms, [](ArmResult const& arm) { return arm.difference.has_value(); });
  for (auto const& warning : result.warnings) fmt::print(stderr, "warning: {}\n", warning);
  for (auto const& failure : result.failures) fmt::print(stderr, "failed: {}, seed {}: {}\n", failure.arm, failure.seed, failure.message);
  if (candidate == result.arms.end()) {
    fail(Exit::unclear, fmt::format("no pair has finished in {}: the same command goes on", clock_time(seconds)));
    return result.failures.empty() ? Exit::unclear : Exit::failed;
  }
  auto const judgement = judgement_of(result, *candidate);
  entry.take(judgement, result);
  auto const path = options.folders.output / "judge.jsonl";
  append(path, entry);
  auto const bases = read_ledger(path);
  auto const& candidates = *std::ranges::find_if(bases, [&](Candidates const& each) { return each.are_like(entry); });
  auto const more = pairs_to_stand(candidates, entry, judgement);
  if (options.json) {
    auto json = json_of(judgement);
    auto const stands = candidates.stands();
    json["seconds"] = seconds;
    json["ledger"] = {{"tried", candidates.size()}, {"stand", std::ranges::count(stands, true)}};
    for (std::size_t i = 0; i < stands.size(); ++i)
      if (candidates[i].candidate == entry.candidate) json["ledger"]["stands"] = static_cast<bool>(stands[i]);
    json["ledger"]["pairs_more"] = more ? Json(*more) : nullptr;
    json["read"] = {{"base", entry.base}, {"candidate", entry.candidate}};
    for (auto const& [file, sha256] : result.read) json["read"][file] = sha256;
    json["revision"] = entry.revision;
    json["folder"] = entry.folder;
    json["warnings"] = result.warnings;
    for (auto const& failure : result.failures)
      json["warnings"].push_back(fmt::format("{}, seed {} failed: {}", failure.arm, failure.seed, failure.message));
    fmt::print("{}\n", json_text(json));
  } else if (!options.quiet) {
    auto const verdict = sentence(judgement.candidate, judgement.base, judgement.unit, judgement.comparison, judgement.question);
    auto const advice = more ? fmt::format("; about {} more pairs would let this one stand", *more) : "";
    fmt::print("{}\n{}{}{}\n", verdict, in_words(judgement), candidates.in_words(), advice);
    fmt::print("{} ({})\n", (result.folder / "report.html").string(), clock_time(seconds));
  }
  return exit_of(judgement.comparison.verdict);
}

}  // namespace

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

Exit judge_candidate(JudgeOptions const& options) {
  auto const began = std::chrono::steady_clock::now();
  LedgerEntry entry;
  Ablation const ablation = as_ablation(options, entry);
  read_ledger(options.folders.output / "judge.jsonl");  // a damaged one is told before anything is trained
  Exit const exit = run_ablation(ablation, options, false);
  if (exit != Exit::done && exit != Exit::failed) return exit;
  return answer(options, read_material(ablation.folder()), std::move(entry), seconds_since(began));
}

}  // namespace heed
