#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "experiments/metric/row.hpp"
#include "experiments/run/exchange/event_format.hpp"

namespace heed {

/// TensorBoard's event file of a run in training: events.out.tfevents.SECONDS.HOST.heed beside metrics.jsonl (train.log.tensorboard), with
/// one event per row. Its wall times differ between runs that are otherwise equal.
class EventFile {
 public:
  /// Opens the event file in the folder of `jsonl` to append, or makes it. Keeps the events of the rows in metrics.jsonl; drops what an
  /// interrupted run wrote after its checkpoint, and an incomplete last record. Missing rows are added with the present time. Throws
  /// FileError, and leaves the file unchanged, if a record to be kept is damaged; Error if the file cannot be written.
  explicit EventFile(std::filesystem::path const& jsonl);
  ~EventFile();
  EventFile(EventFile const&) = delete;
  EventFile& operator=(EventFile const&) = delete;

  /// Adds a row that is already in metrics.jsonl, with the present time. Throws Error if the disk is full.
  void write(Row const& row);
  /// Waits until all events are on disk. Throws Error.
  void sync();

 private:
  void append(std::string_view bytes);
  [[noreturn]] void fail() const;

  std::filesystem::path path_;
  int descriptor_ = -1;
};

/// Writes rows as an event file into a folder; the file's name and its first record have the time of the first row. Throws Error if it
/// cannot be written.
void write_event_file(std::filesystem::path const& folder, std::vector<TimedRow> const& rows);

}  // namespace heed
