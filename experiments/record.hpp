#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace heed {

/// A row of metrics: named numbers of one step. NaN and infinities are written as strings.
struct Row {
  std::int64_t step = 0;
  std::vector<std::pair<std::string, double>> values;

  void set(std::string name, double value) { values.emplace_back(std::move(name), value); }
  /// Null if there is none.
  double const* find(std::string_view name) const;
};

/// One line of JSON without its line end; reals are printed so that they read back exactly.
std::string to_json(Row const& row);
/// What to_json() wrote; what is no number is NaN. Throws FileError, its message beginning with the place ("FILE:LINE"), for a text that is
/// not a JSON object with a step.
Row parse_row(std::string_view line, std::string const& place);
/// A number as JSON: NaN, infinity and −infinity as the strings "NaN", "Infinity", "-Infinity".
nlohmann::ordered_json number(double value);
/// What number() wrote; NaN for anything else.
double number_of(nlohmann::ordered_json const& value);

/// metrics.jsonl of a run: one object a line, in order of the steps.
class Metrics {
 public:
  /// Opens the file to append, keeping the rows before `step`: what a run that was cut off wrote after its checkpoint is dropped, and
  /// so is a torn last line. Throws FileError if the file cannot be read or a row in its middle is not one, and leaves it as it is; Error
  /// if it cannot be written.
  Metrics(std::filesystem::path path, std::int64_t step);
  ~Metrics();
  Metrics(Metrics const&) = delete;
  Metrics& operator=(Metrics const&) = delete;

  /// The step of the last row; −1 without one.
  std::int64_t last_step() const { return last_step_; }
  /// A metric's value in the last of the kept rows that have it, which earlier calls wrote; 0 without one.
  double before(std::string const& name) const;
  /// Throws Error if the disk is full.
  void write(Row const& row);
  /// Waits until all rows are on the disk.
  void sync();

 private:
  std::int64_t keep_before(std::int64_t step);
  [[noreturn]] void fail() const;
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::int64_t last_step_ = -1;
  std::map<std::string, double> before_;
};

/// Facts of the machine and the program for summary.json: revision, compiler, processor, matrix library, threads.
nlohmann::ordered_json environment();
/// What must be equal for a run to be resumed with the same bits: processor, threads, matrix library; as one line of text.
std::string numeric_environment();
/// Bytes of memory that can still be had on this machine (and within a control group's limit).
double available_memory();

}  // namespace heed
