#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "experiments/metric/row.hpp"

namespace heed {

/// CRC-32C (Castagnoli; RFC 3720, B.4): reflected, polynomial 0x1EDC6F41.
std::uint32_t crc32c(std::string_view bytes);

/// Seconds since 1970.
double wall_time_now();

/// An event file for TensorBoard, events.out.tfevents.SECONDS.heed: an event per row of metrics, with a tag per metric, whose first '.'
/// becomes the '/' by which TensorBoard groups ("validation/loss"), and the number rounded to float32, which is all that TensorBoard reads.
class EventFile {
 public:
  /// Begins a file in `folder`. Of the rows in files that began before it, TensorBoard drops those of `step` and later. Throws Error if it
  /// cannot be written.
  EventFile(std::filesystem::path const& folder, Index step, double wall_time = wall_time_now());
  /// Adds a row. Throws Error if the disk is full.
  void write(Row const& row, double wall_time = wall_time_now());

 private:
  void append(std::string_view bytes);

  std::filesystem::path path_;
  std::ofstream file_;
};

}  // namespace heed
