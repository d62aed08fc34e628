#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "experiments/metric/row.hpp"

namespace heed {

// TensorBoard's event files: records of TFRecord (little-endian length [8 bytes], its masked CRC-32C [4], data, their masked CRC-32C [4]),
// each an Event in protobuf's wire format (tensorboard/compat/proto/{event,summary,tensor}.proto). The first Event has the file's version.

/// CRC-32C (Castagnoli; RFC 3720, B.4): reflected, polynomial 0x1EDC6F41.
std::uint32_t crc32c(std::string_view bytes);
/// The CRC-32C c of bytes, masked as TFRecord stores it: ((c >> 15) | (c << 17)) + 0xa282ead8, modulo 2³².
std::uint32_t masked_crc32c(std::string_view bytes);

/// The tag of a metric: its first '.' becomes '/', by which TensorBoard groups ("validation/loss.length64"). A name may contain both
/// characters: the first one is replaced by the other, so that this function is its own inverse.
std::string event_tag(std::string_view metric);

/// A row of metrics with the time at which it was recorded, in seconds since 1970.
struct TimedRow {
  double wall_time = 0;
  Row row;
};

/// The first record of a file: an Event with file_version "brain.Event:2".
std::string version_record(double wall_time);

/// The record of a row: an Event whose summary has one value per number, for the plugin "scalars". TensorBoard reads scalars only as
/// DT_FLOAT (data/server/data_compat.rs, tensor_proto_to_scalar: DT_DOUBLE is DataLoss; DATA_CLASS_SCALAR in summary.proto). Therefore each
/// tensor has the nearest float32 in float_val, which is displayed, and the exact number in double_val, which readers of DT_FLOAT ignore.
std::string scalars_record(TimedRow const& timed);

/// Reads the rows of an event file that heed wrote, in order.
class EventReader {
 public:
  /// `bytes`: the content of `path`; error messages begin with `path`. Throws FileError as next() does, and if the first record is not the
  /// file's version.
  EventReader(std::string bytes, std::string path);

  /// The next row; nothing at the end of the file or before an incomplete record. Throws FileError, with the byte where the record begins,
  /// for a wrong checksum or an event that heed did not write.
  std::optional<TimedRow> next();

  /// The end of the last record that was read: up to here the file can be kept.
  std::size_t end() const { return end_; }

 private:
  std::optional<std::string_view> record();
  /// "PATH: the record at byte N".
  std::string place() const;

  std::string bytes_, path_;
  std::size_t begin_ = 0, end_ = 0;  ///< of the last record that was read
};

}  // namespace heed
