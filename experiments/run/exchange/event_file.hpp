#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "experiments/metric/row.hpp"
#include "experiments/run/exchange/event_format.hpp"

namespace heed {

/// TensorBoard's file of a run that is being trained: events.out.tfevents.SECONDS.HOST.heed beside metrics.jsonl (train.log.tensorboard),
/// with each row of it once. Its wall times differ between runs that are otherwise equal.
class EventFile {
 public:
  /// Opens the file in the folder of `jsonl` to append, or makes it. Of its events those are kept that stand for the rows that
  /// metrics.jsonl holds; what a run that was cut off wrote after its checkpoint is dropped, and so is a torn last record. Rows that it
  /// lacks are added with the present time. Throws FileError if a record among those that are kept is damaged, and leaves the file as it
  /// is; Error if it cannot be written.
  explicit EventFile(std::filesystem::path const& jsonl);
  ~EventFile();
  EventFile(EventFile const&) = delete;
  EventFile& operator=(EventFile const&) = delete;

  /// Adds a row that metrics.jsonl holds already, with the present time. Throws Error if the disk is full.
  void write(Row const& row);
  /// Waits until all events are on the disk.
  void sync();

 private:
  void append(std::string_view bytes);
  [[noreturn]] void fail() const;

  std::filesystem::path path_;
  int descriptor_ = -1;
};

/// Writes rows as a file of this kind into a folder; its name and its first event have the time of the first row. Throws Error.
void write_event_file(std::filesystem::path const& folder, std::vector<TimedRow> const& rows);

}  // namespace heed
