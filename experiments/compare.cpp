#include "experiments/compare.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>

#include "experiments/history.hpp"
#include "experiments/metric/info.hpp"
#include "experiments/table.hpp"

namespace heed {

namespace fs = std::filesystem;

namespace {

using Rows = std::vector<std::vector<std::string>>;

struct Compared {
  std::string name;
  std::vector<std::pair<std::string, std::string>> keys;
  History history;
};

Compared opened(fs::path const& run, Places const& places) {
  fs::path folder = find_run(run, places);
  if (!fs::is_directory(folder)) folder = folder.parent_path();
  std::string name = folder.filename().string();
  return {name.empty() ? folder.parent_path().filename().string() : name, flatten(load_kept(folder).root), read_history(folder)};
}

/// A row for each key that not all give the same value.
Rows differing(std::vector<Compared> const& runs) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<std::string>> values;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (auto const& [key, value] : runs[i].keys) {
      auto& row = values[key];
      if (row.empty()) order.push_back(key);
      row.resize(runs.size());
      row[i] = value;
    }
  }
  Rows rows;
  for (auto const& key : order) {
    auto const& row = values[key];
    if (key == "name" || std::ranges::all_of(row, [&](auto const& value) { return value == row.front(); })) continue;
    rows.push_back({key});
    for (auto const& value : row) rows.back().push_back(value.empty() ? "–" : value);
  }
  return rows;
}

/// ▇▅▃▂▁ of at most `width` values, between the least and the greatest of all runs.
std::string curve(std::vector<std::pair<std::int64_t, double>> const& series, double least, double greatest, std::size_t width) {
  static char const* const blocks[]{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::string line;
  auto const count = std::min(width, series.size());
  for (std::size_t i = 0; i < count; ++i) {
    double const value = series[i * series.size() / count].second;
    double const share = greatest > least ? (value - least) / (greatest - least) : 0;
    line += std::isfinite(value) ? blocks[static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * 7.999)] : "×";
  }
  return line;
}

/// One line a run: its curve, and the first, best and last value.
std::string curves(std::vector<Compared> const& runs, std::string const& metric) {
  double least = std::numeric_limits<double>::infinity(), greatest = -least;
  for (auto const& run : runs) {
    if (auto const found = run.history.find(metric); found != run.history.end()) {
      for (auto const& [step, value] : found->second) {
        if (!std::isfinite(value)) continue;
        least = std::min(least, value);
        greatest = std::max(greatest, value);
      }
    }
  }
  auto const* const info = find_metric(metric);
  bool const higher = info != nullptr && info->better == Better::higher;
  Rows rows{{with_unit(metric), "first", higher ? "highest" : "lowest", "last", "at step", ""}};
  for (auto const& run : runs) {
    auto const found = run.history.find(metric);
    if (found == run.history.end()) continue;
    auto const& series = found->second;
    double best = std::nan("");
    for (auto const& [step, value] : series) {
      if (std::isnan(best) || (higher ? value > best : value < best)) best = value;
    }
    rows.push_back({run.name, fmt::format("{:.4f}", series.front().second), fmt::format("{:.4f}", best),
                    fmt::format("{:.4f}", series.back().second), fmt::format("{}", series.back().first),
                    curve(series, least, greatest, 40)});
  }
  return table(rows);
}

}  // namespace

Exit compare_runs(std::vector<fs::path> const& names, Places const& places, std::ostream& out) {
  std::vector<Compared> runs;
  for (auto const& name : names) runs.push_back(opened(name, places));
  auto rows = differing(runs);
  if (rows.empty()) {
    out << "the configurations are equal\n\n";
  } else {
    std::vector<std::string> head{"key"};
    for (auto const& run : runs) head.push_back(run.name);
    rows.insert(rows.begin(), head);
    out << table(rows) << '\n';
  }
  std::set<std::string> metrics;
  for (auto const& run : runs) {
    for (auto const& [metric, series] : run.history) {
      if (metric == "loss" || metric.starts_with("validation.")) metrics.insert(metric);
    }
  }
  for (auto const& metric : metrics) out << curves(runs, metric) << '\n';
  return Exit::done;
}

}  // namespace heed
