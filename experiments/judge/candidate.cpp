#include <algorithm>
#include <chrono>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "experiments/ablation/ablation.hpp"
#include "experiments/ablation/arms.hpp"
#include "experiments/folder/folder.hpp"
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
    auto const shape = [](Yaml const& value) {  // its keys, and what it is
      auto const* const kind = value.inside("kind");
      return std::pair(mapped(value.entries, &Yaml::Entry::key), kind != nullptr ? kind->text : "");
    };
    if (before != nullptr && entry.value.kind == Yaml::NodeKind::map && shape(*before) == shape(entry.value))
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

/// Base and candidate; names and hashes of both go into the ledger's line.
std::pair<Document, Document> asked(std::vector<std::string> const& what, Folders folders, Json& line) {
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
  auto const base_name = base.file.stem().string(), name = files.size() == 2 ? candidate.file.stem().string() : name_of(changes);
  line = {{"base", hash_of(base)},
          {"base_name", base_name},
          {"candidate", hash_of(candidate)},
          {"name", name == base_name ? name + " (candidate)" : name}};
  if (line["base"] == line["candidate"])
    throw ConfigError("judge", "base and candidate are one configuration: there is nothing to compare");
  return {std::move(base), std::move(candidate)};
}

/// Base and candidate as an ablation whose seeds are given out until there is a verdict.
Ablation as_ablation(JudgeOptions const& options, Json& line) {
  auto const [base, candidate] = asked(options.what, options.folders, line);
  std::string const base_name = line["base_name"], name = line["name"];
  auto const label = [&](char const* key) { return line[key].get<std::string>().substr(0, 8); };
  std::vector<Yaml::Entry> changes;
  add_changes(whole(base), whole(candidate), "", changes);
  Document file{base.file,
                map_of({{"base", {}, base.root}, {"add", {}, map_of({{base_name, {}, map_of({})}, {name, {}, map_of(changes)}})}})};
  auto const set = [&](char const* key, std::string const& text) { assign(file, key, Yaml::scalar(text, true)); };
  set("ablation", fmt::format("judge-{}-{}/{}-{}", file_label(base_name), label("base"), folder_label(name), label("candidate")));
  set("baseline", base_name);
  set("trials", "..");
  assign(file, fmt::format("seeds={}", std::max(most_pairs, options.pairs.value_or(0))));
  assign(file, fmt::format("until_verdict={}", options.pairs.value_or(1)));
  if (options.metric) set("metric", *options.metric);
  if (options.margin) assign(file, fmt::format("margin={}", *options.margin));
  if (options.lower || options.higher) set("better", options.lower ? "lower" : "higher");
  return load_ablation(std::move(file), {}, options.folders);
}

Exit answer(JudgeOptions const& options, Material const& result, Json line, double seconds) {
  auto warnings = result.warnings;
  for (auto const& failure : result.failures)
    warnings.push_back(fmt::format("{}, seed {} failed: {}", failure.arm, failure.seed, failure.message));
  for (auto const& warning : warnings) fmt::print(stderr, "warning: {}\n", warning);
  auto const arm = std::ranges::find_if(result.arms, [](ArmResult const& each) { return each.difference.has_value(); });
  if (arm == result.arms.end()) {
    fail(Exit::unclear, fmt::format("no pair has finished in {}: the same command goes on", clock_time(seconds)));
    return result.failures.empty() ? Exit::unclear : Exit::failed;
  }
  auto const judgement = judgement_of(result, *arm);
  line["metric"] = result.metric;
  line.update(judgement);
  line["read"] = {{"base", line["base"]}, {"candidate", line["candidate"]}};
  add_sources(line, result, seconds);
  auto const candidates = append(options.folders.output / "judge.jsonl", line);
  auto const stands = standing_verdicts(candidates);
  auto const own = std::ranges::find(candidates, line["candidate"], [](Json const& each) { return each["candidate"]; });
  auto const tried = candidates.size(), stand = static_cast<std::size_t>(std::ranges::count(stands, true));
  bool const own_stands = stands[static_cast<std::size_t>(own - candidates.begin())];
  std::optional<std::size_t> enough;  // pairs in all that would let this verdict stand, too
  if (!own_stands && (line["verdict"] == "better" || line["verdict"] == "worse"))
    enough = pairs_that_tell(result.differences(*arm), 20 * static_cast<double>(tried) / static_cast<double>(stand + 1));
  auto const more = enough && *enough > arm->difference->seeds ? Json(*enough - arm->difference->seeds) : Json(nullptr);
  if (options.json) {
    line["ledger"] = {{"tried", tried}, {"stand", stand}, {"stands", own_stands}, {"pairs_more", more}};
    line["warnings"] = warnings;
    fmt::print("{}\n", json_text(line));
  } else if (!options.quiet) {
    auto const verdict = sentence(arm->name, result.baseline, result.unit, *arm->difference, result.question());
    auto const advice = more.is_null() ? "" : fmt::format("; about {} more pairs would let this one stand", more.dump());
    fmt::print("{}\n{}{}{}\n", verdict, in_words(judgement, result, *arm), in_words(candidates), advice);
    fmt::print("{} ({})\n", (result.folder / "report.html").string(), clock_time(seconds));
  }
  return exit_of(arm->difference->verdict);
}

}  // namespace

Json judgement_of(AblationResult const& result, ArmResult const& arm) {
  auto const& c = *arm.difference;
  auto const& noise = result.baseline_arm()->estimate;
  auto const number = [](std::optional<double> value) { return value && std::isfinite(*value) ? Json(*value) : Json(nullptr); };
  auto const pairs = [](std::optional<std::size_t> value) { return value ? Json(*value) : Json(nullptr); };
  bool const open = c.e && c.verdict == Verdict::unclear, told = c.deviation > 0 && std::isfinite(c.deviation);
  double const bound = static_cast<double>(c.arms) / Question().significance();
  return {{"base_name", result.baseline},
          {"name", arm.name},
          {"difference", number(c.mean)},
          {"interval", {number(c.interval ? c.interval->low : NAN), number(c.interval ? c.interval->high : NAN)}},
          {"e", number(c.e)},
          {"p", c.p},
          {"verdict", name(c.verdict == Verdict::identical ? Verdict::equivalent : c.verdict)},
          {"pairs", c.seeds},
          {"pairs_that_tell", pairs(open ? pairs_that_tell(result.differences(arm), bound) : std::nullopt)},
          {"noise_floor",
           {{"deviation", number(noise && noise->count > 1 ? noise->deviation : NAN)},
            {"difference_told", number(told ? difference_told(c.seeds).value_or(NAN) * c.deviation : NAN)}}}};
}

std::string in_words(Json const& judgement, AblationResult const& result, ArmResult const& arm) {
  auto const& noise = judgement["noise_floor"];
  auto const& c = *arm.difference;
  auto const size = [&](Json const& value) { return measured(value.is_null() ? INFINITY : value.get<double>(), {}, result.unit); };
  std::string text;
  if (result.baseline_arm()->values.size() > 1)
    text = fmt::format("noise: {} varies by {} over seeds (standard deviation)", result.baseline, size(noise["deviation"]));
  if (!noise["difference_told"].is_null())
    text += fmt::format("; {} pairs tell a difference of {} with 80 % power", c.seeds, size(noise["difference_told"]));
  if (!text.empty()) text += "\n";
  if (!c.e || c.verdict != Verdict::unclear) return text;
  auto const enough = judgement["pairs_that_tell"].is_null() ? 0 : judgement["pairs_that_tell"].get<std::size_t>();
  if (enough <= c.seeds)
    return text + (c.seeds < 3 ? "more pairs: three are needed to say how many would tell\n"
                               : "no number of pairs up to 1,000 is expected to tell these apart\n");
  text += fmt::format("about {} would tell", plural(enough - c.seeds, "more pair"));
  double const seconds = result.baseline_arm()->seconds.value_or(0) + arm.seconds.value_or(0);
  if (seconds > 0) text += fmt::format(" ({} one after another)", clock_time(seconds * static_cast<double>(enough - c.seeds)));
  return text + "\n";
}

void add_sources(Json& answer, Material const& result, double seconds) {
  answer["seconds"] = seconds;
  for (auto const& [file, sha256] : result.read) answer["read"][file] = sha256;
  for (auto const& [key, value] : result.environment)
    if (key == "revision") answer["revision"] = value;
  answer["folder"] = result.folder.string();
}

Exit exit_of(Verdict verdict) {
  if (verdict == Verdict::better) return Exit::better;
  if (verdict == Verdict::worse) return Exit::worse;
  return verdict == Verdict::unclear ? Exit::unclear : Exit::equivalent;
}

Exit judge_candidate(JudgeOptions const& options) {
  auto const began = std::chrono::steady_clock::now();
  Json line;
  Ablation const ablation = as_ablation(options, line);
  read_ledger(options.folders.output / "judge.jsonl");  // a damaged one is told before anything is trained
  Exit const exit = run_ablation(ablation, options, false);
  if (exit != Exit::done && exit != Exit::failed) return exit;
  return answer(options, read_material(ablation.folder()), std::move(line), seconds_since(began));
}

}  // namespace heed
