#include "experiments/run/history.hpp"

#include <fstream>
#include <iterator>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/error.hpp"
#include "experiments/run/record.hpp"
#include "experiments/run/result_file.hpp"
#include "nn/files/input_file.hpp"

namespace heed {

namespace fs = std::filesystem;

History read_history(fs::path const& folder) {
  fs::path const path = folder / "metrics.jsonl";
  check_written(folder, "metrics.jsonl");
  std::istringstream file(read_file(path));
  History history;
  std::int64_t number = 0, last = -1;
  for (std::string line; std::getline(file, line);) {
    ++number;
    try {
      auto const row = parse_row(line, fmt::format("{}:{}", path.string(), number));
      if (row.step <= last) throw FileError(fmt::format("{}:{}: step {} after step {}", path.string(), number, row.step, last));
      last = row.step;
      for (auto const& [name, value] : row.values) history[name].emplace_back(row.step, value);
    } catch (FileError const&) {
      if (!file.eof()) throw;  // else it has no line end: torn
    }
  }
  return history;
}

std::optional<std::int64_t> kept_step(fs::path const& folder) {
  auto const summary = find_json(folder / "summary.json");
  auto const best = summary && summary->is_object() ? summary->value("best", nlohmann::ordered_json()) : nlohmann::ordered_json();
  if (!best.is_object() || !best.contains("step") || !best["step"].is_number_integer()) return std::nullopt;
  return best["step"].get<std::int64_t>();
}

std::optional<std::int64_t> last_step(fs::path const& folder) {
  std::error_code missing;
  if (!fs::is_regular_file(folder / "metrics.jsonl", missing)) return std::nullopt;
  std::ifstream file(folder / "metrics.jsonl", std::ios::binary | std::ios::ate);
  if (!file) return std::nullopt;
  std::int64_t const size = file.tellg();
  for (std::int64_t window = 16384;; window *= 8) {  // longer than a row, but for rows of many probes
    file.clear();
    file.seekg(std::max<std::int64_t>(0, size - window));
    std::string const tail(std::istreambuf_iterator<char>(file), {});
    if (auto const key = tail.rfind("{\"step\":"); key != std::string::npos) return std::atoll(tail.c_str() + key + 8);
    if (window >= size) return std::nullopt;
  }
}

}  // namespace heed
