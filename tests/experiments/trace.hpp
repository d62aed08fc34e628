#pragma once

#include "tests/json.hpp"

// What a run leaves, as far as equal runs have it in common.

namespace heed::test {

namespace fs = std::filesystem;

/// The rows of metrics.jsonl without the keys that may differ between equal runs.
inline std::vector<std::string> rows_of(fs::path const& run) {
  std::vector<std::string> rows;
  for (auto const& row : json_rows<OrderedJson>(run / "metrics.jsonl")) {
    auto kept = OrderedJson::object();
    for (auto const& [key, value] : row.items())
      if (!key.starts_with("time.") && !key.starts_with("memory.")) kept[key] = value;
    rows.push_back(kept.dump());
  }
  return rows;
}

/// What equal runs have in common.
struct Trace {
  std::vector<std::string> rows;
  std::map<std::string, std::string> files;  ///< by name; the content of those that must be equal
};

inline Trace trace_of(fs::path const& run) {
  Trace trace{rows_of(run), {}};
  for (auto const& entry : fs::directory_iterator(run)) {
    auto const name = entry.path().filename().string();
    if (name == ".lock") continue;  // it names its last holder
    bool const equal = entry.is_regular_file() && name != "metrics.jsonl" && name != "summary.json" && name != "report.html";
    trace.files[name] = equal ? get(entry.path()) : "";
  }
  return trace;
}

inline void check_equal(Trace const& found, Trace const& expected) {
  CHECK(found.rows.size() == expected.rows.size());
  for (std::size_t i = 0; i < std::min(found.rows.size(), expected.rows.size()); ++i) {
    CHECK(found.rows[i] == expected.rows[i]);
    if (found.rows[i] != expected.rows[i]) break;
  }
  for (auto const& file : expected.files) {
    CHECK_MESSAGE(found.files.contains(file.first), file.first << " is missing");
    if (found.files.contains(file.first)) CHECK_MESSAGE((found.files.at(file.first) == file.second), file.first << " differs");
  }
  for (auto const& file : found.files) CHECK_MESSAGE(expected.files.contains(file.first), file.first << " is left over");
}

}  // namespace heed::test
