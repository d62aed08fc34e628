#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "experiments/metric/row.hpp"

namespace heed {

/// metrics.jsonl of a run: one JSON object per line, in order of the steps.
class Metrics {
 public:
  /// Reads the rows before `step`, and calls `see` with each. Throws FileError if the file cannot be read or a row in its middle is
  /// damaged.
  Metrics(std::filesystem::path path, Index step, std::function<void(Row const&)> const& see = {});
  ~Metrics();
  Metrics(Metrics const&) = delete;
  Metrics& operator=(Metrics const&) = delete;

  /// The step of the last row; −1 without rows.
  Index last_step() const { return last_step_; }
  /// A metric's last finite value in the rows that were kept; 0 without one.
  double before(std::string const& name) const;
  /// Opens the file to append behind these rows: drops what an interrupted run wrote after its checkpoint, and an incomplete last line.
  /// Throws Error if it cannot be written.
  void open();
  /// Appends a row to the open file. Throws Error if the disk is full.
  void write(Row const& row);
  /// Waits until all rows are on disk. Throws Error.
  void sync();

 private:
  [[noreturn]] void fail() const;
  std::filesystem::path path_;
  std::string kept_;  ///< the text of the rows, until the file is open
  int descriptor_ = -1;
  Index last_step_ = -1;
  std::map<std::string, double> before_;
};

/// Facts about machine and program for summary.json: revision, compiler, libraries, processor, threads, system.
nlohmann::ordered_json environment();
/// All that must be equal for a resumed run to have the same bits: processor, threads, libraries and compiler, in one line of text.
std::string numeric_environment();

/// A run's rows by metric: (step, value), in order.
using History = std::map<std::string, std::vector<std::pair<Index, double>>>;

/// The rows of a run's metrics.jsonl; an incomplete last line is left out. Throws FileError if a row is damaged, steps are not in order,
/// there is no such file, or it is not the one that the run finished with (check_written).
std::vector<Row> read_rows(std::filesystem::path const& folder);
/// The same rows by metric.
History read_history(std::filesystem::path const& folder);

/// The step whose weights a finished run has kept instead of the last ones (train.keep: best); nothing if it has kept the last.
std::optional<Index> kept_step(std::filesystem::path const& folder);

/// The step of the last row on disk, which may still be incomplete; reads only the end of the file. Nothing if there is no row yet.
std::optional<Index> last_step(std::filesystem::path const& folder);

}  // namespace heed
