#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "experiments/metric/row.hpp"

namespace heed {

/// metrics.jsonl of a run: one object a line, in order of the steps.
class Metrics {
 public:
  /// Opens the file to append, keeping the rows before `step`: what a run that was cut off wrote after its checkpoint is dropped, and
  /// so is a torn last line. Throws FileError if the file cannot be read or a row in its middle is not one, and leaves it as it is; Error
  /// if it cannot be written. `see` is shown each row that is kept. Not `writes`: nothing is dropped, and the file is
  /// left as it is.
  Metrics(std::filesystem::path path, std::int64_t step, std::function<void(Row const&)> const& see = {}, bool writes = true);
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
  std::int64_t keep_before(std::int64_t step, std::function<void(Row const&)> const& see);
  [[noreturn]] void fail() const;
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::int64_t last_step_ = -1;
  std::map<std::string, double> before_;
};

/// Facts of the machine and the program for summary.json: revision, compiler, libraries, processor, threads, system.
nlohmann::ordered_json environment();
/// What must be equal for a run to be resumed with the same bits: processor, threads, libraries, compiler; as one line of text.
std::string numeric_environment();

/// A run's rows by metric: (step, value), in order.
using History = std::map<std::string, std::vector<std::pair<std::int64_t, double>>>;

/// The rows of a metrics.jsonl's text; a torn last line is left out. Throws FileError, which begins with the path, if a row is damaged.
std::vector<Row> parse_rows(std::string const& text, std::string const& path);

/// metrics.jsonl of a run, by parse_rows. Throws FileError likewise, and if there is none or its rows are not those of the finished run
/// (check_written).
std::vector<Row> read_rows(std::filesystem::path const& folder);
/// The same by metric.
History read_history(std::filesystem::path const& folder);

/// The step whose weights a finished run has kept instead of the last (train.keep: best); nothing if it has kept these.
std::optional<std::int64_t> kept_step(std::filesystem::path const& folder);

/// The step of the last whole row on disk, by a look at the end of the file only; nothing if there is none yet.
std::optional<std::int64_t> last_step(std::filesystem::path const& folder);

}  // namespace heed
