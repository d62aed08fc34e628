#include <algorithm>
#include <chrono>
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "experiments/ablation/ablation.hpp"
#include "experiments/ablation/arms.hpp"
#include "experiments/folder/folder.hpp"
#include "experiments/folder/record.hpp"
#include "experiments/judge/judge.hpp"
#include "experiments/judge/ledger.hpp"
#include "experiments/program/system.hpp"
#include "experiments/train/weights.hpp"
#include "nn/files/json.hpp"
#include "nn/files/sha256.hpp"

namespace heed {

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

struct BaseAndCandidate {
  Document base, candidate;
  std::string name;  ///< of the candidate
};

BaseAndCandidate asked(std::vector<std::string> const& what, Folders folders) {
  auto const is_change = [](std::string const& word) { return word.find('=') != word.npos; };
  auto const first = std::ranges::find_if(what, is_change);
  std::vector<std::string> const files(what.begin(), first), changes(first, what.end());
  if (files.empty() || files.size() > 2 || !std::ranges::all_of(changes, is_change))
    throw ConfigError("judge",
                      "wants a base, then a candidate's file or changed keys: heed judge BASE.yaml [CANDIDATE.yaml] key.path=value …");
  BaseAndCandidate asked{.base = load(files.front()), .candidate = load(files.back()), .name = name_of(changes)};
  if (is_ablation(asked.base)) throw ConfigError(files.front(), "is an ablation: judge compares runs (heed run trains an ablation)");
  for (auto const& change : changes) {
    assign(asked.candidate, change);
    if (files.size() == 2) assign(asked.base, change);
  }
  for (Document* const document : {&asked.base, &asked.candidate}) {
    folders.config_folder = fs::absolute(document->file).parent_path();
    inherit_model(*document, folders);
  }
  if (files.size() == 2) asked.name = asked.candidate.file.stem().string();
  if (asked.name == asked.base.file.stem()) asked.name += " (candidate)";
  return asked;
}

/// Base and candidate as an ablation whose seeds are given out until there is a verdict.
Ablation as_ablation(JudgeOptions const& options, LedgerEntry& entry) {
  auto const [base, candidate, name] = asked(options.what, options.folders);
  entry.base = hash_of(base);
  entry.base_name = base.file.stem().string();
  entry.candidate = hash_of(candidate);
  entry.name = name;
  if (entry.base == entry.candidate) throw ConfigError("judge", "base and candidate are one configuration: there is nothing to compare");
  std::vector<Yaml::Entry> changes;
  add_changes(whole(base), whole(candidate), "", changes);
  Document file{base.file,
                map_of({{"base", {}, base.root}, {"add", {}, map_of({{entry.base_name, {}, map_of({})}, {name, {}, map_of(changes)}})}})};
  auto const set = [&](char const* key, std::string const& value) { assign(file, key, Yaml::scalar(value, true)); };
  set("ablation", fmt::format("judge-{}-{}/{}-{}", file_label(entry.base_name), entry.base.substr(0, 8), folder_label(name),
                              entry.candidate.substr(0, 8)));
  set("baseline", entry.base_name);
  set("trials", "..");
  assign(file, fmt::format("seeds={}", std::max(most_pairs, options.pairs.value_or(0))));
  assign(file, fmt::format("until_verdict={}", options.pairs.value_or(1)));
  if (options.metric) set("metric", *options.metric);
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
    json["ledger"]["pairs_more"] = more ? nlohmann::ordered_json(*more) : nullptr;
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
