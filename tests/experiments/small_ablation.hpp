#pragma once

#include "tests/experiments/said.hpp"
#include "tests/json.hpp"

// A small ablation on associative recall, run through the real program.

namespace heed::test {

namespace fs = std::filesystem;

inline constexpr char const* small_base = R"(
data: {kind: recall, pairs: 2, keys: 4, values: 4, validation: 20}
model: {kind: gpt, layers: 1, heads: 2, width: 16, context: 8}
train:
  steps: 40
  batch: 4
  evaluate: {every: 20}
  checkpoint: {every: 10}
)";

inline constexpr char const* small_ablation = R"(
ablation: small
base: base.yaml
vary: {model.attention: [scaled, additive, hard]}
seeds: 2
baseline: scaled
)";

using Arguments = std::vector<std::string>;

struct SmallAblation {
  Folder folder;
  fs::path runs = folder / "runs";
  fs::path small = runs / "small";

  SmallAblation() {
    put(folder / "base.yaml", small_base);
    put(folder / "small.yaml", small_ablation);
  }
  Arguments command(Arguments const& more = {}) const {
    return joined({"run", (folder / "small.yaml").string(), "--output", runs.string()}, more);
  }
  Outcome run(Arguments const& more = {}) const { return run_heed(command(more)); }
  Json summary() const { return summary_of(small); }
  /// results.csv without what may differ between equal runs.
  std::vector<std::string> rows() const {
    std::vector<std::string> result;
    for (auto const& line : lines_of(get(small / "results.csv")))
      if (line.find(",time.") == std::string::npos && line.find(",memory.") == std::string::npos) result.push_back(line);
    return result;
  }
  /// How many trials were begun once, how many more often, by the records that they append to.
  std::map<std::string, std::size_t> starts() const {
    std::map<std::string, std::size_t> result;
    for (auto const& [name, time] : finished()) {
      auto const log = get(small / name / "log.txt");
      bool const once = occurrences(log, "tokens a step") == 1 && log.find("finished already") == log.npos;
      ++result[once ? "once" : "more often"];
    }
    return result;
  }
  /// When each finished trial was finished.
  std::map<std::string, fs::file_time_type> finished() const {
    std::map<std::string, fs::file_time_type> result;
    std::error_code missing;
    for (auto const& entry : fs::directory_iterator(small, missing))
      if (fs::exists(entry.path() / "summary.json")) result[entry.path().filename()] = fs::last_write_time(entry.path() / "summary.json");
    return result;
  }
};

/// What a test case with an ablation of its own has.
struct OneAblation {
  SmallAblation const bench;
};

/// Trials that were finished before are those of then.
inline void check_untouched(std::map<std::string, fs::file_time_type> const& before,
                            std::map<std::string, fs::file_time_type> const& after) {
  for (auto const& [name, time] : before) CHECK(after.at(name) == time);
}

}  // namespace heed::test
