#include "experiments/judge/runs_table.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/config/yaml.hpp"
#include "experiments/judge/long_table.hpp"
#include "nn/files/number.hpp"
#include "nn/files/sha256.hpp"
#include "nn/files/utf8.hpp"

namespace heed {
namespace {

/// JSON with quotes around NaN, Infinity and -Infinity, which Python writes without.
std::string with_quoted_infinities(std::string_view json) {
  std::string text;
  bool inside = false;  // a text, which ends with the line at the latest
  for (std::size_t i = 0, size = 1; i < json.size(); i += size) {
    bool named = false;
    size = inside && json[i] == '\\' ? 2 : 1;
    for (std::string_view const name : {"NaN", "Infinity", "-Infinity"})
      if (!inside && json.substr(i, name.size()) == name) named = true, size = name.size();
    if (json[i] == '"' || json[i] == '\n') inside = json[i] == '"' && !inside;
    for (auto const part : {std::string_view(named ? "\"" : ""), json.substr(i, size), std::string_view(named ? "\"" : "")}) text += part;
  }
  return text;
}

Table read_table(std::filesystem::path const& path, std::vector<HashedFile>& read) {
  auto const bytes = read_text(path);
  read.push_back({path.string(), sha256(std::as_bytes(std::span(bytes)))});
  auto const text = without_byte_order_mark(bytes);
  check_utf8(text, path.string(), "save the table as UTF-8");
  auto const ending = path.extension();
  if (ending == ".csv") return parse_table(text, path.string(), csv_rows, ColumnNames::header);
  if (ending == ".tsv") return parse_table(text, path.string(), tab_rows, ColumnNames::header);
  bool const lines = ending == ".jsonl" || ending == ".ndjson";
  if (!lines && ending != ".json")
    throw FileError(path.string() + ": its ending must say how it is written: .csv, .tsv, .jsonl, .ndjson or .json");
  return parse_table(with_quoted_infinities(text), path.string(), lines ? json_rows : json_list_rows, ColumnNames::rows);
}

/// A row of a long table.
struct LongRow {
  LongTable const& of;
  Table::TableRow const& row;

  [[noreturn]] void refuse(std::string const& message) const { of.table.refuse(row, message); }
  std::string const& field(std::size_t column) const {
    if (!row.absent.empty() && row.absent[column]) refuse(fmt::format("there is no field {}", shown(of.table.columns[column])));
    return row.fields[column];
  }
  Index whole(std::size_t column) const {
    if (auto const number = parsed_number<Index>(field(column))) return *number;
    refuse(fmt::format("{}: {} is no whole number", of.table.columns[column], shown(field(column))));
  }
  /// The metric, which is worse than any number if it is not finite.
  double value(Better better) const;
  std::pair<std::string, Index> arm_and_seed() const;
};

double LongRow::value(Better better) const {
  auto const& text = field(of.value);
  auto const number = parsed_number<double>(text);
  if (!number)
    refuse(fmt::format("{} of {}: {} is no number{}", of.table.columns[of.value], shown(field(of.arm)), shown(text),
                       text.empty()                  ? "; write NaN where a run diverged, and no row where nothing was measured"
                       : text.find(',') != text.npos ? "; write 0.5, not 0,5"
                                                     : ""));
  if (std::isfinite(*number)) return *number;
  return better == Better::lower ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
}

std::pair<std::string, Index> LongRow::arm_and_seed() const {
  auto const& name = field(of.arm);
  bool const prints = std::ranges::none_of(name, [](unsigned char c) { return c < ' '; });  // and fits in a line
  if (name.find_first_not_of(' ') == name.npos || !prints) refuse(fmt::format("{}: {} is no name", of.table.columns[of.arm], shown(name)));
  if (of.seed) return {name, whole(*of.seed)};
  auto const digits = name.find_last_not_of("0123456789") + 1;
  auto const seed = parsed_number<Index>(name.substr(digits));
  for (std::string_view const mark : {"seed=", "seed-", "seed_", "seed ", "seed", "s=", "s", ""}) {
    auto arm = name.substr(0, digits);
    if (!seed || !arm.ends_with(mark)) continue;
    arm.resize(arm.size() - mark.size());
    auto const size = arm.find_last_not_of("-_/ ") + 1;
    if (size > 0 && size < arm.size() && arm[size - 1] != ':') return {arm.substr(0, size), *seed};
  }
  refuse(
      fmt::format("the run {} does not end in its seed, as in gpt-seed3, gpt_s3 or gpt-3; rename it, or name the columns of arm and seed",
                  shown(name)));
}

using LastLines = std::map<std::pair<std::string, Index>, std::size_t>;

/// Adds the rows of a table to the runs of the result. `lines`: of each run's last row.
void add_rows(LongTable const& of, Better better, RunsTable& result, LastLines& lines) {
  for (auto const& each : of.table.rows) {
    LongRow const row{of, each};
    auto const [name, seed] = row.arm_and_seed();
    auto arm = std::ranges::find(result.arms, name, &TableArm::name);
    if (arm == result.arms.end()) arm = result.arms.insert(arm, {name, {}, {}});
    if (std::ranges::find(result.seeds, seed) == result.seeds.end()) result.seeds.push_back(seed);
    auto& curve = arm->histories[seed][result.metric];
    Index const step = of.step ? row.whole(*of.step) : 0;
    auto& line = lines[{name, seed}];
    if (!curve.empty() && step <= curve.back().first)
      row.refuse(fmt::format("{}, seed {}, ", shown(name), seed) +
                 (of.step ? fmt::format("has step {} after step {}", step, curve.back().first)
                          : fmt::format("twice: line {} and line {}; if these are steps, name their column with --step", line, each.line)));
    curve.emplace_back(step, row.value(better));
    line = each.line;
  }
}

/// The value of a run that counts.
double value_at(std::vector<std::pair<Index, double>> const& curve, RunsTableOptions const& options, std::string const& run) {
  if (options.at == "last") return curve.back().second;
  auto const [smallest, largest] = std::ranges::minmax_element(curve, {}, [](auto const& row) { return row.second; });
  if (options.at == "best") return options.better == Better::lower ? smallest->second : largest->second;
  auto const step = parsed_number<Index>(options.at);
  if (!step) throw ConfigError("--at", fmt::format("wants last, best or a step, found {}", shown(options.at)));
  for (auto const& [each, value] : curve)
    if (each == *step) return value;
  throw ConfigError("--at", fmt::format("{} has no step {}; its last is {}", run, *step, curve.back().first));
}

/// Remarks on how many runs there are, which diverged, and which have no partner.
void count_runs(RunsTable& table, RunsTableOptions const& options) {
  std::size_t runs = 0, common = 0;
  for (auto const seed : table.seeds) common += std::ranges::all_of(table.arms, [&](auto const& arm) { return arm.values.contains(seed); });
  for (auto const& arm : table.arms) {
    std::vector<Index> missing, diverged;
    for (auto const seed : table.seeds)
      if (auto const found = arm.values.find(seed); found == arm.values.end() || !std::isfinite(found->second))
        (found == arm.values.end() ? missing : diverged).push_back(seed);
    auto const remark = [&](std::vector<Index> const& seeds, char const* said) {
      if (!seeds.empty())
        table.remarks.push_back(fmt::format("{}: seed{} {} {}", arm.name, seeds.size() == 1 ? "" : "s", fmt::join(seeds, ", "), said));
    };
    remark(missing, "missing, and left out of its comparisons");
    remark(diverged, "diverged, which counts as worse than any number");
    runs += arm.values.size();
  }
  table.remarks.push_back(fmt::format("{} runs: {} arms, {} seeds; the {} value of {} counts, {} is better", runs, table.arms.size(),
                                      table.seeds.size(), parsed_number<Index>(options.at) ? "step " + options.at : options.at,
                                      table.metric, name(options.better)));
  if (common < 6) table.remarks.push_back(fmt::format("seeds that all arms have: {}; a comparison can tell something from six on", common));
}

}  // namespace

RunsTable read_runs_table(RunsTableOptions const& options) {
  RunsTable result;
  std::vector<Table> read;
  for (auto const& path : options.files) read.push_back(read_table(path, result.read));
  auto const tables = long_tables(std::move(read), options, result);
  LastLines lines;
  for (auto const& each : tables) add_rows(each, options.better, result, lines);
  bool const steps = tables.front().step.has_value();
  if (!steps && options.at != "last") throw ConfigError("--at", "there are no steps; name their column with --step");
  for (auto& arm : result.arms) {
    for (auto const& [seed, curves] : arm.histories)
      arm.values[seed] = value_at(curves.at(result.metric), options, fmt::format("{}, seed {},", arm.name, seed));
    if (!steps) arm.histories.clear();
  }
  count_runs(result, options);
  return result;
}

}  // namespace heed
