#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "experiments/metric/row.hpp"

namespace heed {

// TensorBoard's event files: records of TFRecord (little-endian length [8 bytes], its masked CRC-32C [4], data, their masked CRC-32C [4]),
// each an Event in protobuf's wire format (tensorboard/compat/proto/{event,summary,tensor}.proto). The first one has the file's version.

/// CRC-32C (Castagnoli; RFC 3720, B.4): reflected, polynomial 0x1EDC6F41.
std::uint32_t crc32c(std::string_view bytes);
/// As TFRecord stores a CRC c: ((c >> 15) | (c << 17)) + 0xa282ead8, modulo 2³².
std::uint32_t masked_crc32c(std::string_view bytes);

/// The tag of a metric: its first '.' is a '/', by which TensorBoard groups ("validation/loss.length64"). Names may hold both signs: the
/// first of them becomes the other one, so that this function is its own inverse.
std::string event_tag(std::string_view metric);

/// A row of metrics with the time at which it was recorded, in seconds since 1970.
struct TimedRow {
  double wall_time = 0;
  Row row;
};

/// The record that a file begins with: an Event with file_version "brain.Event:2".
std::string version_record(double wall_time);

/// The record of a row: an Event whose summary has a value for each number, of the plugin "scalars". TensorBoard reads scalars of DT_FLOAT
/// alone (data/server/data_compat.rs, tensor_proto_to_scalar: DT_DOUBLE is DataLoss; DATA_CLASS_SCALAR in summary.proto): a tensor has the
/// nearest float32 in float_val, which is shown, and the number itself in double_val, which readers of DT_FLOAT pass over.
std::string scalars_record(TimedRow const& timed);

/// The rows of an event file that heed wrote, in order.
class EventReader {
 public:
  /// `bytes`: the content of `path`, with which messages begin. Throws FileError, as next(), for a first record of another kind.
  EventReader(std::string bytes, std::string path);

  /// The next row; nothing at the end, or before a record that is torn: shorter than it says. Throws FileError, with the byte at which the
  /// record begins, for a wrong checksum and for what is no event of heed's.
  std::optional<TimedRow> next();

  /// Where the last record ends that was read: what can be kept of the file.
  std::size_t end() const { return end_; }

 private:
  std::optional<std::string_view> record();
  /// "PATH: the record at byte N".
  std::string place() const;

  std::string bytes_, path_;
  std::size_t begin_ = 0, end_ = 0;  ///< of the last record
};

}  // namespace heed
