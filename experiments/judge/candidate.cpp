#include <algorithm>
#include <chrono>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "experiments/ablation/ablation.hpp"
#include "experiments/ablation/arms.hpp"
#include "experiments/folder/folder.hpp"
#include "experiments/judge/judge.hpp"
#include "experiments/metric/evidence.hpp"
#include "experiments/program/system.hpp"
#include "experiments/train/weights.hpp"
#include "nn/files/input_file.hpp"
#include "nn/files/json.hpp"
#include "nn/files/sha256.hpp"

namespace heed {

using Json = nlohmann::ordered_json;

namespace {

constexpr std::size_t most_pairs = 40;  ///< unless more are asked for

/// All settings but the name and the seed.
Yaml settings_of(Document const& document) {
  Experiment settings;
  fill(document, settings);
  settings.name.clear(), settings.seed = 1;
  return tree(settings);
}

/// Of two configurations the smallest parts that differ, with the second's values: a section of another kind is one part.
void add_changes(Yaml const& from, Yaml const& to, std::string const& section, std::vector<Yaml::Entry>& changes) {
  for (auto const& [key, location, value] : to.entries) {
    Yaml const* const before = from.inside(key);
    if (before != nullptr && emit_line(*before) == emit_line(value)) continue;
    auto const shape = [](Yaml const& of) {  // its keys, and what it is
      auto const* const kind = of.inside("kind");
      return std::pair(mapped(of.entries, &Yaml::Entry::key), kind != nullptr ? kind->text : "");
    };
    if (before != nullptr && value.kind == Yaml::NodeKind::map && shape(*before) == shape(value))
      add_changes(*before, value, dotted(section, key), changes);
    else
      changes.push_back({dotted(section, key), location, value});
  }
}

/// "position=rotary, heads=2": an arm's name for changes of these keys.
std::string name_of(std::vector<std::string> const& changes) {
  auto const last = [](std::string const& change) {
    return last_word(change.substr(0, change.find('='))) + change.substr(change.find('='));
  };
  auto name = fmt::format("{}", fmt::join(mapped(changes, last), ", "));
  std::ranges::replace(name, '/', '-');
  return name.size() <= max_label ? name : cut_label(file_label(name));
}

/// Base and candidate as they are given; `name`: the candidate's.
std::pair<Document, Document> asked(std::vector<std::string> const& what, Folders folders, std::string& name) {
  auto const is_change = [](std::string const& word) { return word.find('=') != word.npos && !is_file(word); };
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
  name = files.size() == 2 ? candidate.file.stem().string() : name_of(changes);
  if (name == base.file.stem()) name += " (candidate)";
  return {std::move(base), std::move(candidate)};
}

/// Base and candidate as an ablation whose seeds are given out until there is a verdict; adds their hashes to the ledger's line. They get
/// at least as many as were looked at before: evidence is not taken back.
Ablation as_ablation(JudgeOptions const& options, std::vector<Candidates> const& ledger, Json& line) {
  std::string name;
  auto const [base, candidate] = asked(options.what, options.folders, name);
  auto const from = settings_of(base), to = settings_of(candidate);
  auto const base_name = base.file.stem().string(), base_hash = sha256(emit(from)), hash = sha256(emit(to));
  if (hash == base_hash) throw ConfigError("judge", "base and candidate are one configuration: there is nothing to compare");
  line = {{"base", base_hash}, {"candidate", hash}};
  Index pairs = options.pairs.value_or(1);
  for (auto const& candidates : ledger)
    for (auto const& tried : candidates)
      if (tried["base"] == base_hash && tried["candidate"] == hash) pairs = std::max(pairs, tried["pairs"].get<Index>());
  std::vector<Yaml::Entry> changes;
  add_changes(from, to, "", changes);
  auto const arms = Yaml::map({{base_name, {}, Yaml::map({})}, {name, {}, Yaml::map(changes)}});
  Document file{base.file, Yaml::map({{"base", {}, base.root}, {"add", {}, arms}})};
  auto const set = [&](char const* key, auto const& value) { assign(file, key, Yaml::scalar(fmt::format("{}", value))); };
  set("ablation", fmt::format("judge-{}-{}/{}-{}{}", file_label(base_name), base_hash.substr(0, 8), folder_label(name), hash.substr(0, 8),
                              options.metric ? "-" + file_label(*options.metric) : ""));
  set("baseline", base_name);
  set("trials", "..");
  set("seeds", std::max(static_cast<Index>(most_pairs), pairs));
  set("until_verdict", pairs);
  if (options.metric) set("metric", *options.metric);
  if (options.margin) set("margin", *options.margin);
  if (options.lower || options.higher) set("better", options.lower ? "lower" : "higher");
  return load_ablation(std::move(file), {}, options.folders);
}

/// What is said of an arm beside the baseline, also without a pair.
Json judgement_of(Material const& result, ArmResult const& arm) {
  auto c = arm.difference.value_or(Comparison());
  if (c.seeds == 0) c.mean = NAN;
  auto const& noise = result.baseline_arm()->estimate;
  auto const number = [](std::optional<double> value) { return value && std::isfinite(*value) ? Json(*value) : Json(nullptr); };
  auto const pairs = [](std::optional<std::size_t> value) { return value ? Json(*value) : Json(nullptr); };
  bool const open = c.e && c.verdict == Verdict::unclear, told = c.deviation > 0 && std::isfinite(c.deviation);
  double const bound = static_cast<double>(c.arms) / Question().significance();
  auto const power = c.e ? difference_told(c.seeds, 1 / bound) : detectable_effect(c.seeds, c.arms);
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
            {"difference_told", number(told ? power.value_or(NAN) * c.deviation : NAN)}}}};
}

/// The arm beside the baseline, of two, if they have a pair.
ArmResult const* judged_arm(Material const& result) {
  auto const arm = std::ranges::find_if(result.arms, [](ArmResult const& each) { return each.difference.has_value(); });
  return result.arms.size() == 2 && arm != result.arms.end() ? &*arm : nullptr;
}

/// How the ledger's line stands among the other candidates: {tried, stand, stands, pairs_more}, of pairs what would let it stand, too.
Json standing_of(Json const& line, Candidates const& candidates, Material const& result) {
  auto const stands = standing_verdicts(candidates);
  auto const own = std::ranges::find(candidates, line["candidate"], [](Json const& each) { return each["candidate"]; });
  bool const own_stands = stands[static_cast<std::size_t>(own - candidates.begin())];
  auto const tried = candidates.size(), stand = static_cast<std::size_t>(std::ranges::count(stands, true));
  std::size_t const pairs = line["pairs"];
  std::optional<std::size_t> enough;
  if (!own_stands && has_verdict(line))
    enough = pairs_that_tell(result.differences(*judged_arm(result)), 20 * static_cast<double>(tried) / static_cast<double>(stand + 1));
  auto const more = enough && *enough > pairs ? Json(*enough - pairs) : Json(nullptr);
  return {{"tried", tried}, {"stand", stand}, {"stands", own_stands}, {"pairs_more", more}};
}

}  // namespace

Json answer_of(Material const& result, double seconds) {
  Json judged = Json::array();
  for (auto const& arm : result.arms)
    if (arm.name != result.baseline) judged.push_back(judgement_of(result, arm));
  auto answer = judged.size() == 1 ? judged.front() : Json{{"arms", judged}};
  answer["seconds"] = seconds;
  for (auto const& [file, sha256] : result.read) answer["read"][file] = sha256;
  for (auto const& [key, value] : result.environment)
    if (key == "revision") answer["revision"] = value;
  answer["folder"] = result.folder.string();
  return answer;
}

std::string in_words(Json const& answer, Material const& result) {
  auto const* const arm = judged_arm(result);
  if (arm == nullptr) return "";
  auto const& noise = answer["noise_floor"];
  auto const& c = *arm->difference;
  auto const size = [&](Json const& value) { return measured(value.is_null() ? INFINITY : value.get<double>(), {}, result.unit); };
  std::string text;
  if (result.baseline_arm()->values.size() > 1)
    text = fmt::format("noise: {} varies by {} over seeds (standard deviation)", result.baseline, size(noise["deviation"]));
  if (!noise["difference_told"].is_null())
    text += fmt::format("; {} pairs tell a difference of {} with 80 % power", c.seeds, size(noise["difference_told"]));
  if (!text.empty()) text += "\n";
  if (!c.e || c.verdict != Verdict::unclear) return text;
  auto const enough = answer["pairs_that_tell"].is_null() ? 0 : answer["pairs_that_tell"].get<std::size_t>();
  if (enough <= c.seeds)
    return text + (c.seeds < 3 ? "more pairs: three are needed to say how many would tell\n"
                               : "no number of pairs up to 1,000 is expected to tell these apart\n");
  text += fmt::format("about {} would tell", plural(enough - c.seeds, "more pair"));
  double const seconds = result.baseline_arm()->seconds.value_or(0) + arm->seconds.value_or(0);
  if (seconds > 0)
    text += fmt::format(" ({} one after another{})", clock_time(seconds * static_cast<double>(enough - c.seeds)),
                        enough > most_pairs ? fmt::format("; --pairs {}", enough) : "");
  return text + "\n";
}

Exit exit_of(Material const& result) {
  auto const* const arm = judged_arm(result);
  if (arm == nullptr) return result.arms.size() == 2 ? Exit::unclear : Exit::done;
  auto const verdict = arm->difference->verdict;
  if (verdict == Verdict::better) return Exit::better;
  if (verdict == Verdict::worse) return Exit::worse;
  return verdict == Verdict::unclear ? Exit::unclear : Exit::equivalent;
}

Exit judge_candidate(JudgeOptions const& options) {
  auto const began = std::chrono::steady_clock::now();
  auto const ledger = options.folders.output / "judge.jsonl";
  Json line;
  Ablation const ablation = as_ablation(options, read_ledger(ledger), line);
  Exit const exit = run_ablation(ablation, options, false);
  if (exit != Exit::done && exit != Exit::failed) return exit;
  auto const result = read_material(ablation.folder());
  auto warnings = result.warnings;
  for (auto const& failure : result.failures)
    warnings.push_back(fmt::format("{}, seed {} failed: {}", failure.arm, failure.seed, failure.message));
  for (auto const& warning : warnings) fmt::print(stderr, "warning: {}\n", warning);
  double const seconds = seconds_since(began);
  auto const* const arm = judged_arm(result);
  line["metric"] = result.metric;
  line.update(answer_of(result, seconds));
  if (arm == nullptr) {
    bool const ended = result.trials_done == result.trials_of;
    fail(Exit::unclear, ended ? "no pair: both diverged or failed with every seed"
                              : fmt::format("no pair has finished in {}: the same command goes on", clock_time(seconds)));
    line["warnings"] = warnings;
    if (options.json) fmt::print("{}\n", json_text(line));
    return result.failures.empty() ? Exit::unclear : Exit::failed;
  }
  line["read"].update({{"base", line["base"]}, {"candidate", line["candidate"]}});
  auto const candidates = append(ledger, line);
  auto const standing = standing_of(line, candidates, result);
  if (options.json) {
    line["ledger"] = standing;
    line["warnings"] = warnings;
    fmt::print("{}\n", json_text(line));
  } else if (!options.quiet) {
    auto const verdict = sentence(arm->name, result.baseline, result.unit, *arm->difference, result.question());
    auto const& more = standing["pairs_more"];
    auto const advice = more.is_null()
                            ? ""
                            : fmt::format("; about {} would let this one stand (--pairs {})", plural(more.get<std::size_t>(), "more pair"),
                                          more.get<std::size_t>() + arm->difference->seeds);
    fmt::print("{}\n{}{}{}\n", verdict, in_words(line, result), in_words(candidates), advice);
    fmt::print("{} ({})\n", (result.folder / "report.html").string(), clock_time(seconds));
  }
  return exit_of(result);
}

}  // namespace heed
