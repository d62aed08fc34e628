#include "experiments/run/exchange/event_format.hpp"

#include <array>
#include <bit>
#include <utility>

#include <fmt/format.h>

#include "autograd/error.hpp"

namespace heed {

namespace {

// ---------------------------------------------------------------- bytes

template <class Unsigned>
void put_little(std::string& out, Unsigned value) {
  for (std::size_t i = 0; i < sizeof(Unsigned); ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

template <class Unsigned>
Unsigned little(std::string_view bytes) {
  Unsigned value = 0;
  for (std::size_t i = 0; i < sizeof(Unsigned); ++i) value |= static_cast<Unsigned>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return value;
}

constexpr std::array<std::uint32_t, 256> crc_table = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);  // 0x1EDC6F41 with its bits reversed
    table[byte] = crc;
  }
  return table;
}();

// ---------------------------------------------------------------- protobuf

/// How a field's value is stored (protobuf's encoding, "Message structure").
enum class WireType : unsigned { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

unsigned key_of(unsigned field, WireType type) { return field << 3 | static_cast<unsigned>(type); }
void put_key(std::string& out, unsigned field, WireType type) { put_varint(out, key_of(field, type)); }

void put_bytes(std::string& out, unsigned field, std::string_view content) {
  put_key(out, field, WireType::bytes);
  put_varint(out, content.size());
  out += content;
}

/// A field of a message: a number, or bytes.
struct WireField {
  std::uint64_t key = 0;
  std::uint64_t number = 0;
  std::string_view content;
  bool is(unsigned field, WireType type) const { return key == key_of(field, type); }
};

/// Reads the fields of a message in order. Throws FileError, which begins with `place`, for malformed bytes.
class WireReader {
 public:
  WireReader(std::string_view message, std::string const& place) : rest_(message), place_(place) {}

  std::optional<WireField> next() {
    if (rest_.empty()) return std::nullopt;
    WireField field;
    field.key = read_varint();
    switch (static_cast<WireType>(field.key & 7)) {
      case WireType::varint:
        field.number = read_varint();
        break;
      case WireType::fixed64:
        field.number = little<std::uint64_t>(take(8));
        break;
      case WireType::bytes:
        field.content = take(read_varint());
        break;
      case WireType::fixed32:
        field.number = little<std::uint32_t>(take(4));
        break;
      default:
        fail();
    }
    return field;
  }

 private:
  std::string_view take(std::uint64_t count) {
    if (count > rest_.size()) fail();
    auto const taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  std::uint64_t read_varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      auto const byte = static_cast<unsigned char>(take(1).front());
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    fail();
  }

  [[noreturn]] void fail() const { throw FileError(place_ + " is no message of protobuf"); }

  std::string_view rest_;
  std::string const& place_;
};

// ---------------------------------------------------------------- events

constexpr std::string_view event_version = "brain.Event:2";

std::string framed(std::string_view data) {
  std::string length, record;
  put_little(length, static_cast<std::uint64_t>(data.size()));
  record += length;
  put_little(record, masked_crc32c(length));
  record += data;
  put_little(record, masked_crc32c(data));
  return record;
}

/// An Event: wall_time (field 1), step (2), and file_version (3) or summary (5).
std::string event_of(double wall_time, std::int64_t step, unsigned field, std::string_view content) {
  std::string event;
  put_key(event, 1, WireType::fixed64);
  put_little(event, std::bit_cast<std::uint64_t>(wall_time));
  if (step != 0) {  // protobuf does not store default values
    put_key(event, 2, WireType::varint);
    put_varint(event, static_cast<std::uint64_t>(step));
  }
  put_bytes(event, field, content);
  return event;
}

/// SummaryMetadata: plugin_data (field 1) with plugin_name (1); data_class (4) is DATA_CLASS_SCALAR (1).
std::string metadata_of_scalars() {
  std::string plugin, metadata;
  put_bytes(plugin, 1, "scalars");
  put_bytes(metadata, 1, plugin);
  put_key(metadata, 4, WireType::varint);
  put_varint(metadata, 1);
  return metadata;
}

/// TensorProto without axes: dtype (field 1) is DT_FLOAT (1); tensor_shape (2); float_val (5) and double_val (6), packed.
std::string tensor_of(double value) {
  std::string as_float, as_double, tensor;
  put_little(as_float, std::bit_cast<std::uint32_t>(static_cast<float>(value)));
  put_little(as_double, std::bit_cast<std::uint64_t>(value));
  put_key(tensor, 1, WireType::varint);
  put_varint(tensor, 1);
  put_bytes(tensor, 2, "");
  put_bytes(tensor, 5, as_float);
  put_bytes(tensor, 6, as_double);
  return tensor;
}

/// Name and number of a Summary.Value: tag (field 1), tensor (8).
std::pair<std::string, double> scalar_of(std::string_view message, std::string const& place) {
  std::optional<std::string> name;
  std::optional<double> value;
  WireReader fields(message, place);
  while (auto const field = fields.next()) {
    if (field->is(1, WireType::bytes)) name = event_tag(field->content);
    if (!field->is(8, WireType::bytes)) continue;
    WireReader tensor(field->content, place);
    while (auto const part = tensor.next())
      if (part->is(6, WireType::bytes) && part->content.size() == 8) value = std::bit_cast<double>(little<std::uint64_t>(part->content));
  }
  if (!name || !value) throw FileError(place + " has a value that heed did not write: no tag, or no double_val");
  return {*name, *value};
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = ~0u;
  for (char const byte : bytes) crc = crc_table[(crc ^ static_cast<unsigned char>(byte)) & 0xff] ^ crc >> 8;
  return ~crc;
}

std::uint32_t masked_crc32c(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xa282ead8; }

std::string event_tag(std::string_view metric) {
  std::string tag(metric);
  if (auto const at = tag.find_first_of("./"); at != tag.npos) tag[at] = tag[at] == '.' ? '/' : '.';
  return tag;
}

std::string version_record(double wall_time) { return framed(event_of(wall_time, 0, 3, event_version)); }

std::string scalars_record(TimedRow const& timed) {
  std::string summary;
  for (auto const& [name, number] : timed.row.values) {
    std::string value;
    put_bytes(value, 1, event_tag(name));
    put_bytes(value, 8, tensor_of(number));
    put_bytes(value, 9, metadata_of_scalars());
    put_bytes(summary, 1, value);
  }
  return framed(event_of(timed.wall_time, timed.row.step, 5, summary));
}

EventReader::EventReader(std::string bytes, std::string path) : bytes_(std::move(bytes)), path_(std::move(path)) {
  auto const first = record();
  if (!first) return;
  auto const where = place();
  WireReader fields(*first, where);
  while (auto const field = fields.next())
    if (field->is(3, WireType::bytes) && field->content == event_version) return;
  throw FileError(fmt::format("{} is no event with the version {}", where, event_version));
}

std::optional<TimedRow> EventReader::next() {
  auto const data = record();
  if (!data) return std::nullopt;
  auto const where = place();
  TimedRow timed;
  WireReader fields(*data, where);
  while (auto const field = fields.next()) {
    if (field->is(1, WireType::fixed64)) timed.wall_time = std::bit_cast<double>(field->number);
    if (field->is(2, WireType::varint)) timed.row.step = static_cast<std::int64_t>(field->number);
    if (!field->is(5, WireType::bytes)) continue;
    WireReader summary(field->content, where);
    while (auto const value = summary.next())
      if (value->is(1, WireType::bytes)) timed.row.values.push_back(scalar_of(value->content, where));
  }
  return timed;
}

std::optional<std::string_view> EventReader::record() {
  constexpr std::size_t head = 12, tail = 4;
  std::string_view const rest = std::string_view(bytes_).substr(end_);
  if (rest.size() < head) return std::nullopt;
  std::size_t const at = std::exchange(begin_, end_);
  if (little<std::uint32_t>(rest.substr(8)) != masked_crc32c(rest.substr(0, 8)))
    throw FileError(place() + " is damaged: the checksum of its length is another");
  auto const length = little<std::uint64_t>(rest);
  if (rest.size() - head < tail || length > rest.size() - head - tail) {
    begin_ = at;
    return std::nullopt;
  }
  auto const data = rest.substr(head, length);
  if (little<std::uint32_t>(rest.substr(head + length)) != masked_crc32c(data))
    throw FileError(place() + " is damaged: the checksum of its data is another");
  end_ += head + length + tail;
  return data;
}

std::string EventReader::place() const { return fmt::format("{}: the record at byte {}", path_, begin_); }

}  // namespace heed
