#include <algorithm>
#include <chrono>
#include <cstdio>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "experiments/ablation/ablation.hpp"
#include "experiments/ablation/arms.hpp"
#include "experiments/folder/folder.hpp"
#include "experiments/folder/record.hpp"
#include "experiments/judge/judge.hpp"
#include "experiments/judge/ledger.hpp"
#include "experiments/program/system.hpp"
#include "nn/files/json.hpp"
#include "nn/files/sha256.hpp"

namespace heed {

namespace fs = std::filesystem;

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
    auto const keys = [](Yaml const& value) {
      std::vector<std::string> all;
      for (auto const& each : value.entries) all.push_back(each.key);
      return all;
    };
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

std::string hash_of(Document document, std::vector<Assignment> const& changes) {
  assign(document, "seed", Yaml::scalar("1"));
  auto const text = full_configuration(std::move(document), changes);
  return sha256(std::as_bytes(std::span(text)));
}

struct BaseAndCandidate {
  Document base;
  std::string base_name;
  Yaml::Entry candidate;  ///< its name, and what it changes
};

/// "position=rotary, heads=2", as an arm may be called.
std::string name_of(std::vector<Yaml::Entry> const& changes) {
  std::string name;
  for (auto const& change : changes)
    name += fmt::format("{}{}={}", name.empty() ? "" : ", ", last_word(change.key), emit_line(change.value));
  std::ranges::replace(name, '/', '-');
  return name.size() <= max_label ? name : cut_label(file_label(name));
}

BaseAndCandidate asked(JudgeOptions const& options) {
  auto const is_change = [](std::string const& word) { return word.find('=') != word.npos; };
  auto const files = std::ranges::find_if(options.what, is_change) - options.what.begin();
  if (files == 0 || files > 2)
    throw ConfigError("judge", "wants a base and a candidate: heed judge BASE.yaml CANDIDATE.yaml, or heed judge BASE.yaml key.path=value");
  std::vector<std::string> const changed(options.what.begin() + files, options.what.end());
  if (!std::ranges::all_of(changed, is_change))
    throw ConfigError(changed.back(), "the files come first, then changes: heed judge BASE.yaml [CANDIDATE.yaml] key.path=value …");
  fs::path const path = options.what.front();
  Document base = load(path);
  if (is_ablation(base)) throw ConfigError(path.string(), "is an ablation: judge compares runs (heed run trains an ablation)");
  std::vector<Yaml::Entry> changes;
  if (files == 1) {
    if (changed.empty())
      throw ConfigError("judge", "the candidate is missing: another file, or keys that change: model.attention=additive");
    for (auto const& change : changed) {
      Document one;
      assign(one, change);
      auto const key = change.substr(0, change.find('='));
      changes.push_back({key, {}, *one.root.find(key)});
    }
    auto name = name_of(changes);
    return {std::move(base), path.stem().string(), {std::move(name), {}, map_of(std::move(changes))}};
  }
  Document candidate = load(options.what[1]);
  for (auto const& change : changed) {
    assign(base, change);
    assign(candidate, change);
  }
  add_changes(whole(base), whole(candidate), "", changes);
  auto name = candidate.file.stem().string();
  if (name == path.stem()) name += " (candidate)";
  return {std::move(base), path.stem().string(), {name, {}, map_of(std::move(changes))}};
}

/// Base and candidate as an ablation whose seeds are given out until there is a verdict.
Ablation as_ablation(BaseAndCandidate const& question, JudgeOptions const& options, std::string const& name) {
  auto const number = [](auto value) { return Yaml::scalar(fmt::format("{}", value)); };
  Document file{question.base.file, map_of({{"ablation", {}, Yaml::scalar(name, true)},
                                            {"base", {}, question.base.root},
                                            {"add", {}, map_of({{question.base_name, {}, map_of({})}, question.candidate})}})};
  auto& entries = file.root.entries;
  entries.push_back({"baseline", {}, Yaml::scalar(question.base_name, true)});
  entries.push_back({"seeds", {}, number(std::max(most_pairs, options.pairs.value_or(0)))});
  entries.push_back({"until_verdict", {}, number(options.pairs.value_or(1))});
  entries.push_back({"trials", {}, Yaml::scalar("..", true)});
  if (options.metric) entries.push_back({"metric", {}, Yaml::scalar(*options.metric, true)});
  if (options.margin) entries.push_back({"margin", {}, number(*options.margin)});
  if (options.lower || options.higher) entries.push_back({"better", {}, Yaml::scalar(options.lower ? "lower" : "higher", true)});
  return load_ablation(std::move(file), {}, options.folders);
}

Ablation asked_ablation(JudgeOptions const& options, LedgerEntry& entry) {
  auto const question = asked(options);
  entry.base = hash_of(question.base, {});
  entry.base_name = question.base_name;
  auto ablation = as_ablation(question, options, "judge");
  auto const& arm = ablation.arms.back();
  entry.candidate = hash_of(question.base, arm.changes);
  entry.name = arm.name;
  ablation.settings.ablation = fmt::format("judge-{}-{}/{}-{}", file_label(entry.base_name), entry.base.substr(0, 8),
                                           folder_label(arm.name), entry.candidate.substr(0, 8));
  return as_ablation(question, options, ablation.settings.ablation);
}

RunOptions run_options(JudgeOptions const& options, Ablation const& ablation) {
  RunOptions run;
  run.config = ablation.base.file;
  run.folders = options.folders;
  run.quiet = options.quiet;
  run.jobs = options.jobs;
  run.threads = options.threads;
  run.within = options.within;
  return run;
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
  auto const same_base = [&](Candidates const& each) { return each.front().base == entry.base && each.front().metric == entry.metric; };
  auto const& candidates = *std::ranges::find_if(bases, same_base);
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
    fmt::print("{}\n", json_text(json));
  } else if (!options.quiet) {
    fmt::print("{}{}{}\n", in_words(judgement), candidates.in_words(),
               more ? fmt::format("; about {} more pairs would let this one stand", *more) : "");
    fmt::print("{} ({})\n", (result.folder / "report.html").string(), clock_time(seconds));
  }
  return exit_of(judgement.comparison.verdict);
}

}  // namespace

Exit judge_candidate(JudgeOptions const& options) {
  auto const began = std::chrono::steady_clock::now();
  LedgerEntry entry;
  Ablation const ablation = asked_ablation(options, entry);
  std::string page;
  Exit const exit = run_ablation(ablation, run_options(options, ablation), &page);
  if (exit != Exit::done && exit != Exit::failed) return exit;
  return answer(options, read_material(ablation.folder()), std::move(entry), seconds_since(began));
}

}  // namespace heed
