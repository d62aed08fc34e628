#pragma once

#include "tests/json.hpp"

// What a run leaves, as far as equal runs have it in common.

namespace heed::test {

namespace fs = std::filesystem;

/// The rows of metrics.jsonl without the keys that may differ between equal runs, and without what only probes record.
inline std::vector<std::string> rows_of(fs::path const& run, bool with_probes = true) {
  std::vector<std::string> rows;
  for (auto const& row : json_rows<OrderedJson>(run / "metrics.jsonl")) {
    auto kept = OrderedJson::object();
    for (auto const& [key, value] : row.items())
      if (!key.starts_with("time.") && !key.starts_with("memory.") && (with_probes || !key.starts_with("probe."))) kept[key] = value;
    rows.push_back(kept.dump());
  }
  return rows;
}

/// What equal runs have in common.
struct Trace {
  std::vector<std::string> rows;
  std::map<std::string, std::string> files;  ///< by name, below the run's folder; the content of those that must be equal
};

/// Without probes: what a run has in common with one that has none.
inline Trace trace_of(fs::path const& run, bool with_probes = true) {
  Trace trace{rows_of(run, with_probes), {}};
  for (auto const& entry : fs::recursive_directory_iterator(run)) {
    auto const name = fs::relative(entry.path(), run).string();
    if (!entry.is_regular_file() || name == ".lock") continue;  // it names its last holder
    if (!with_probes && (name.starts_with("attention") || name.starts_with("figures") || name == "config.yaml")) continue;
    bool const equal = name != "metrics.jsonl" && name != "summary.json" && name != "report.html";
    trace.files[name] = equal ? get(entry.path()) : "";
  }
  return trace;
}

/// Whether a PDF says where it cannot be taken out (gnuplot.cpp) when it was drawn: newer ones of cairo's, among compressed objects.
inline bool is_dated(std::string const& name, std::string const& content) {
  return name.ends_with(".pdf") && content.find("/CreationDate") == content.npos;
}

inline void check_equal(Trace const& found, Trace const& expected) {
  CHECK(found.rows.size() == expected.rows.size());
  auto const first = std::ranges::mismatch(found.rows, expected.rows);
  if (first.in1 != found.rows.end() && first.in2 != expected.rows.end()) CHECK(*first.in1 == *first.in2);
  for (auto const& file : expected.files) {
    CHECK_MESSAGE(found.files.contains(file.first), file.first << " is missing");
    if (!found.files.contains(file.first) || is_dated(file.first, file.second)) continue;
    CHECK_MESSAGE((found.files.at(file.first) == file.second), file.first << " differs");
  }
  for (auto const& file : found.files) CHECK_MESSAGE(expected.files.contains(file.first), file.first << " is left over");
}

}  // namespace heed::test
