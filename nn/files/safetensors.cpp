#include "nn/files/safetensors.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "autograd/error.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/json.hpp"
#include "nn/files/sha256.hpp"

namespace heed {

static_assert(std::endian::native == std::endian::little, "safetensors are little-endian");

using nlohmann::json;

/// A type of the format: its name, its size, the type it is read as, and how (null: the same bytes).
struct StoredType {
  std::string_view name;
  std::size_t bytes;
  DType dtype;
  void (*convert)(std::byte const* stored, Tensor& tensor);
};

namespace {

constexpr std::size_t prefix_bytes = 8;
constexpr std::size_t max_header = 100'000'000;  // the reference implementation's limit
constexpr std::string_view metadata_key = "__metadata__";

// IEEE 754 binary16: sign, 5 bits of exponent (bias 15), 10 of fraction.
struct Half {
  std::uint16_t bits;
  explicit operator float() const {
    std::uint32_t const sign = (bits & 0x8000u) << 16, exponent = bits >> 10 & 31u, fraction = bits & 0x3ffu;
    if (exponent == 0) return std::copysign(static_cast<float>(fraction) * 0x1p-24f, std::bit_cast<float>(sign | 0x3f800000u));
    auto const wide = exponent == 31 ? 255u : exponent + (127 - 15);  // infinities and NaNs stay what they are
    return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
  }
};

// The upper half of a binary32.
struct BFloat16 {
  std::uint16_t bits;
  explicit operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
};

struct Bool {
  std::uint8_t bits;
  explicit operator Index() const { return bits != 0; }
};

// The stored bytes may be unaligned: hence memcpy.
template <class Stored, class T>
void widen(std::byte const* stored, Tensor& tensor) {
  for (auto& value : tensor.mutable_data<T>()) {
    Stored element;
    std::memcpy(&element, stored, sizeof element);
    stored += sizeof element;
    value = static_cast<T>(element);
  }
}

constexpr std::array stored_types{
    StoredType{"F64", 8, DType::float64, nullptr},
    StoredType{"F32", 4, DType::float32, nullptr},
    StoredType{"F16", 2, DType::float32, widen<Half, float>},
    StoredType{"BF16", 2, DType::float32, widen<BFloat16, float>},
    StoredType{"I64", 8, DType::int64, nullptr},
    StoredType{"I32", 4, DType::int64, widen<std::int32_t, Index>},
    StoredType{"I16", 2, DType::int64, widen<std::int16_t, Index>},
    StoredType{"I8", 1, DType::int64, widen<std::int8_t, Index>},
    StoredType{"U64", 8, DType::int64, nullptr},  // what lies beyond int64 reads as negative and is refused
    StoredType{"U32", 4, DType::int64, widen<std::uint32_t, Index>},
    StoredType{"U16", 2, DType::int64, widen<std::uint16_t, Index>},
    StoredType{"U8", 1, DType::int64, widen<std::uint8_t, Index>},
    StoredType{"BOOL", 1, DType::int64, widen<Bool, Index>},
};

// The first that holds the same bytes.
std::string stored_name(DType dtype) {
  auto const same = [&](StoredType const& type) { return type.dtype == dtype && type.convert == nullptr; };
  return std::string(std::ranges::find_if(stored_types, same)->name);
}

[[noreturn]] void fail(std::string const& where, std::string const& what) { throw FileError(where + ": " + what); }

// A piece of a header, fit for one line of a message.
std::string shown(json const& value) {
  auto text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  return text.size() <= 80 ? text : text.substr(0, 77) + "...";
}

// A whole number ≥ 0 that fits in 63 bits.
std::optional<Index> natural(json const& value) {
  if (!value.is_number_unsigned()) return std::nullopt;
  auto const number = value.get<std::uint64_t>();
  if (number > std::uint64_t{INT64_MAX}) return std::nullopt;
  return static_cast<Index>(number);
}

StoredType const& read_type(std::string const& where, json const& value) {
  if (!value.is_string()) fail(where, fmt::format("dtype is {}, not a string", shown(value)));
  std::vector<std::string_view> known;
  for (auto const& type : stored_types) {
    if (type.name == value.get_ref<std::string const&>()) return type;
    known.push_back(type.name);
  }
  fail(where, fmt::format("dtype {} is none of {}", shown(value), fmt::join(known, ", ")));
}

Shape read_shape(std::string const& where, json const& value, StoredType const& type) {
  if (!value.is_array()) fail(where, fmt::format("shape is {}, not an array", shown(value)));
  if (value.size() > Shape::max_rank) fail(where, fmt::format("shape has {} axes, more than {}", value.size(), Shape::max_rank));
  Shape shape;
  auto bytes = static_cast<Index>(type.bytes);  // a 0 counts as 1: the extents beside it must make sense, too
  for (auto const& element : value) {
    auto const extent = natural(element);
    if (!extent) fail(where, fmt::format("shape {}: {} is not a whole number from 0 to 2^63 - 1", shown(value), shown(element)));
    if (__builtin_mul_overflow(bytes, std::max<Index>(*extent, 1), &bytes))
      fail(where, fmt::format("shape {} is too large: its bytes do not fit in 63 bits", shown(value)));
    shape.append(*extent);
  }
  return shape;
}

std::pair<std::size_t, std::size_t> read_offsets(std::string const& where, json const& value) {
  if (!value.is_array() || value.size() != 2) fail(where, fmt::format("data_offsets is {}, not [begin, end]", shown(value)));
  auto const begin = natural(value[0]), end = natural(value[1]);
  if (!begin || !end) fail(where, fmt::format("data_offsets {} are not two whole numbers from 0 to 2^63 - 1", shown(value)));
  if (*begin > *end) fail(where, fmt::format("data_offsets {} are reversed", shown(value)));
  return {static_cast<std::size_t>(*begin), static_cast<std::size_t>(*end)};
}

/// The hash of what precedes the data: the length of the header, and the header with an open seal at this position.
Sha256 hash_of_head(std::string header, std::size_t seal) {
  header.replace(seal, open_seal().size(), open_seal());
  Sha256 hash;
  std::uint64_t const length = header.size();
  hash.update(std::as_bytes(std::span(&length, 1)));
  hash.update(std::as_bytes(std::span(header)));
  return hash;
}

/// Gives a header that holds a seal the digest of the whole file.
void seal_header(std::string& header, std::vector<std::pair<std::string, Tensor> const*> const& order) {
  auto const at = find_seal(header);
  if (!at) return;
  Sha256 hash = hash_of_head(header, *at);
  for (auto const* item : order) hash.update(bytes_in(item->second));
  header.replace(*at, open_seal().size(), hash.hex());
}

}  // namespace

SafetensorsFile::SafetensorsFile(std::filesystem::path path) : file_(std::move(path)) {
  auto const text = header();
  data_begin_ = prefix_bytes + text.size();
  data_size_ = file_.size() - data_begin_;
  if (!text.starts_with('{')) refuse("the header is not a JSON object: it does not begin with {");
  auto const description = parse_json<json>(text, file_.path().string() + ": the header", 8);
  for (auto const& [name, value] : description.items()) name == metadata_key ? add_metadata(value) : add_entry(name, value);
  std::sort(names_.begin(), names_.end(), [&](std::string const& a, std::string const& b) {
    StoredTensor const &x = entry(a), &y = entry(b);
    return std::tie(x.begin, x.end, a) < std::tie(y.begin, y.end, b);
  });
  check_layout();
}

void SafetensorsFile::refuse(std::string const& what) const { fail(path().string(), what); }

// The header's text, its length checked.
std::string SafetensorsFile::header() const {
  if (file_.size() == 0) refuse("the file is empty");
  if (file_.size() < prefix_bytes)
    refuse(fmt::format("not a safetensors file: {} bytes, less than the 8 of the header's length", file_.size()));
  std::uint64_t length;
  file_.read(0, std::as_writable_bytes(std::span(&length, 1)));
  if (length > max_header) refuse(fmt::format("not a safetensors file: a header of {} bytes (the format allows {})", length, max_header));
  if (length > file_.size() - prefix_bytes)
    refuse(fmt::format("the file is cut short: a header of {} bytes, {} present", length, file_.size() - prefix_bytes));
  std::string text(static_cast<std::size_t>(length), '\0');
  file_.read(prefix_bytes, std::as_writable_bytes(std::span(text)));
  return text;
}

void SafetensorsFile::add_metadata(json const& value) {
  if (!value.is_object()) refuse(fmt::format("__metadata__ is {}, not an object", shown(value)));
  for (auto const& [key, text] : value.items()) {
    if (!text.is_string()) refuse(fmt::format("__metadata__: {} is {}, not a string", shown(key), shown(text)));
    metadata_[key] = text.get<std::string>();
  }
}

void SafetensorsFile::add_entry(std::string const& name, json const& value) {
  auto const where = fmt::format("{}: tensor {}", path().string(), shown(name));
  if (!value.is_object()) fail(where, fmt::format("its description is {}, not an object", shown(value)));
  for (auto const* key : {"dtype", "shape", "data_offsets"})
    if (!value.contains(key)) fail(where, fmt::format("its description has no {}", key));

  auto const& type = read_type(where, value["dtype"]);
  auto const shape = read_shape(where, value["shape"], type);
  auto const [begin, end] = read_offsets(where, value["data_offsets"]);
  auto const bytes = static_cast<std::size_t>(shape.elements()) * type.bytes;
  if (end - begin != bytes)
    fail(where, fmt::format("data_offsets [{}, {}] span {} bytes, but {} of shape {} takes {}", begin, end, end - begin, type.name,
                            to_string(shape), bytes));
  entries_.emplace(name, StoredTensor{&type, shape, begin, end});
  names_.push_back(name);
}

// Every byte of data belongs to one tensor: no overlap, no hole, no rest.
void SafetensorsFile::check_layout() const {
  std::size_t covered = 0;
  std::string const* previous = nullptr;
  for (auto const& name : names_) {
    auto const& [type, shape, begin, end] = entry(name);
    if (begin < covered) refuse(fmt::format("tensors {} and {} overlap", shown(*previous), shown(name)));
    if (begin > covered) refuse(fmt::format("tensor {}: data bytes {} to {} before it belong to no tensor", shown(name), covered, begin));
    if (end > data_size_)
      refuse(fmt::format("the file is cut short: tensor {} ends at data byte {}, {} present", shown(name), end, data_size_));
    covered = end;
    previous = &name;
  }
  if (covered < data_size_) refuse(fmt::format("{} bytes after the last tensor belong to no tensor", data_size_ - covered));
}

SafetensorsFile::StoredTensor const& SafetensorsFile::entry(std::string_view name) const {
  auto const found = entries_.find(name);
  if (found == entries_.end()) refuse(fmt::format("there is no tensor {} among its {}", shown(name), entries_.size()));
  return found->second;
}

Shape const& SafetensorsFile::shape(std::string_view name) const { return entry(name).shape; }

DType SafetensorsFile::dtype(std::string_view name) const { return entry(name).type->dtype; }

Tensor SafetensorsFile::tensor(std::string_view name) const {
  auto const& [type, shape, begin, end] = entry(name);
  Tensor result(shape, type->dtype);
  if (begin == end) return result;
  if (type->convert) {
    std::vector<std::byte> stored(end - begin);
    file_.read(data_begin_ + begin, stored);
    type->convert(stored.data(), result);
  } else {
    file_.read(data_begin_ + begin, writable_bytes_in(result));
  }
  if (type->name == "U64")
    for (auto const value : result.data<std::int64_t>())
      if (value < 0) refuse(fmt::format("tensor {}: {} does not fit in int64", shown(name), static_cast<std::uint64_t>(value)));
  return result;
}

void SafetensorsFile::check_seal() const {
  auto const seal = metadata_.find(std::string(seal_name));
  if (seal == metadata_.end()) return;
  auto const damaged = fmt::format("is damaged, or another program has changed it: its content is not that of its {}", seal_name);
  std::string const text = header();
  auto const at = find_seal(text);
  if (!at) refuse(damaged);
  Sha256 hash = hash_of_head(text, *at);
  hash.update(file_, data_begin_);
  if (hash.hex() != seal->second) refuse(damaged);
}

void save_safetensors(std::filesystem::path const& path, std::vector<std::pair<std::string, Tensor>> const& tensors,
                      std::map<std::string, std::string> const& metadata) {
  auto order = mapped(tensors, [](auto const& item) { return &item; });
  for (auto const& [name, tensor] : tensors)
    if (!tensor.defined()) throw Error(fmt::format("save_safetensors: tensor {} is undefined", shown(name)));
  std::stable_partition(order.begin(), order.end(), [](auto const* item) { return bytes_of(item->second.dtype()) == 8; });

  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header[std::string(metadata_key)] = metadata;
  std::size_t offset = 0;
  std::set<std::string_view> seen{metadata_key};
  for (auto const* item : order) {
    auto const& [name, tensor] = *item;
    if (!seen.insert(name).second)
      throw Error(fmt::format("save_safetensors: the name {} is {}", shown(name), name == metadata_key ? "reserved" : "given twice"));
    auto const end = offset + bytes_in(tensor).size();
    header[name] = {{"dtype", stored_name(tensor.dtype())},
                    {"shape", std::vector(tensor.shape().begin(), tensor.shape().end())},
                    {"data_offsets", {offset, end}}};
    offset = end;
  }

  std::string text;
  try {
    text = header.dump();
  } catch (nlohmann::json::type_error const&) {
    throw Error("save_safetensors: a name or a metadata string is not UTF-8");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  if (text.size() > max_header)
    throw Error(fmt::format("save_safetensors: a header of {} bytes (the format allows {})", text.size(), max_header));

  if (metadata.contains(std::string(seal_name))) seal_header(text, order);

  AtomicFile file(path);
  std::uint64_t const length = text.size();
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(text);
  for (auto const* item : order) file.write(bytes_in(item->second));
  file.commit();
}

}  // namespace heed
