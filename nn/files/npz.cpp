#include "nn/files/npz.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/error.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/input_file.hpp"
#include "nn/files/utf8.hpp"

namespace heed {

std::uint32_t crc32(std::string_view bytes) {
  static auto const table = [] {
    std::array<std::uint32_t, 256> result{};
    for (std::uint32_t i = 0; i < result.size(); ++i) {
      std::uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value & 1) != 0 ? 0xEDB88320U ^ value >> 1 : value >> 1;
      result[i] = value;
    }
    return result;
  }();
  std::uint32_t value = 0xFFFFFFFFU;
  for (char const c : bytes) value = table[(value ^ static_cast<unsigned char>(c)) & 0xFF] ^ value >> 8;
  return ~value;
}

std::string little_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xFF);
  return text;
}

namespace {

/// Magic number, version, and a Python dictionary, padded so that the elements begin at a multiple of 64.
std::string npy_header(std::string const& descr, std::vector<Index> const& shape) {
  std::string dictionary = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", descr, fmt::join(shape, ", "),
                                       shape.size() == 1 ? "," : "");
  constexpr std::size_t before = 10;
  dictionary.append((64 - (before + dictionary.size() + 1) % 64) % 64, ' ');
  dictionary += '\n';
  return std::string("\x93NUMPY\x01\x00", 8) + little_endian(dictionary.size(), 2) + dictionary;
}

/// Bytes that are read from a file, and refuse to be read beyond its end.
class Bytes {
 public:
  Bytes(std::string_view bytes, std::string const& what) : bytes_(bytes), what_(what) {}
  std::string_view at(std::uint64_t from, std::uint64_t count) const {
    if (from > bytes_.size() || count > bytes_.size() - from) refuse("is cut off");
    return bytes_.substr(from, count);
  }
  std::uint64_t number(std::uint64_t from, int count) const {
    std::uint64_t value = 0;
    auto const text = at(from, static_cast<std::uint64_t>(count));
    for (int i = count - 1; i >= 0; --i) value = value << 8 | static_cast<unsigned char>(heed::at(text, i));
    return value;
  }
  std::uint64_t size() const { return bytes_.size(); }
  [[noreturn]] void refuse(std::string const& why) const { throw FileError(fmt::format("{}: {}", what_, why)); }

 private:
  std::string_view bytes_;
  std::string const& what_;
};

/// The header and the elements of an .npy file.
struct Npy {
  std::string descr;
  std::vector<Index> shape;
  std::string_view elements;
  Index count = 1;
};

Npy parse(NpyArray const& array) {
  Bytes const bytes(array.npy, array.name);
  if (bytes.at(0, 6) != "\x93NUMPY") bytes.refuse("is no .npy array");
  int const width = bytes.number(6, 1) == 1 ? 2 : 4;  // of the header's length, in version 1 and later ones
  auto const length = bytes.number(8, width), start = 8 + static_cast<std::uint64_t>(width);
  std::string const header(bytes.at(start, length));
  auto const value = [&](std::string const& key, char const* open, char close) {
    auto const at = header.find("'" + key + "': " + open);
    auto const from = at + key.size() + 4 + std::strlen(open), to = header.find(close, from);
    if (at == header.npos || to == header.npos) bytes.refuse("has no " + key);
    return header.substr(from, to - from);
  };
  Npy npy{value("descr", "'", '\''), {}, bytes.at(start + length, bytes.size() - start - length)};
  if (header.find("'fortran_order': False") == header.npos) bytes.refuse("is not row-major");
  auto const shape = value("shape", "(", ')');
  Index room = Index{1} << 40;  // a 0 counts as 1: the extents beside it must make sense, too
  for (char const *at = shape.data(), *const end = at + shape.size(); at < end;) {
    Index size = 0;
    auto const [next, error] = std::from_chars(at, end, size);
    if (error != std::errc() || size < 0 || size > room) bytes.refuse("has no shape");
    if (npy.shape.size() == Shape::max_rank) bytes.refuse(fmt::format("has more than {} axes", Shape::max_rank));
    npy.shape.push_back(size);
    npy.count *= size;
    room /= std::max<Index>(size, 1);
    for (at = next; at < end && (*at == ',' || *at == ' ');) ++at;
  }
  return npy;
}

/// What a local header and an entry of the central directory share, from "version needed" to the lengths of name and extra field.
std::string description(std::string const& name, std::string_view content) {
  constexpr std::uint64_t version = 20, flags = 0, stored = 0, midnight = 0, january_1st_1980 = 1 << 5 | 1;
  std::string text;
  for (std::uint64_t field : {version, flags, stored, midnight, january_1st_1980}) text += little_endian(field, 2);
  text += little_endian(crc32(content), 4);
  for (int i = 0; i < 2; ++i) text += little_endian(content.size(), 4);  // compressed and not
  return text + little_endian(name.size(), 2) + little_endian(0, 2);
}

/// The types of numbers.
constexpr std::pair<std::string_view, DType> number_types[]{{"<f4", DType::float32}, {"<f8", DType::float64}, {"<i8", DType::int64}};

}  // namespace

Tensor NpyArray::tensor() const {
  Npy const found = parse(*this);
  auto const* const type = std::ranges::find(number_types, found.descr, &std::pair<std::string_view, DType>::first);
  if (type == std::end(number_types)) throw FileError(fmt::format("{}: has elements of type {}, not <f4, <f8 or <i8", name, found.descr));
  if (found.elements.size() != static_cast<std::size_t>(found.count) * bytes_of(type->second))
    throw FileError(name + ": size and shape differ");
  Tensor result(Shape(std::span<Index const>(found.shape)), type->second);
  std::ranges::copy(std::as_bytes(std::span(found.elements)), writable_bytes_in(result).begin());
  return result;
}

std::vector<std::string> NpyArray::texts() const {
  Npy const found = parse(*this);
  std::uint64_t longest = 0;
  auto const* const end = found.descr.data() + found.descr.size();
  bool const is_text = found.descr.starts_with("<U") && std::from_chars(found.descr.data() + 2, end, longest).ptr == end;
  // Texts of no characters take no bytes, however many there are said to be.
  if (!is_text || longest > 0xFFFF || (longest == 0 && found.count > 0) ||
      found.elements.size() != static_cast<std::size_t>(found.count) * longest * 4)
    throw FileError(fmt::format("{}: holds no texts", name));
  Bytes const bytes(found.elements, name);
  std::vector<std::string> result;
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(found.count); ++i) {
    std::string& text = result.emplace_back();
    for (std::uint64_t k = 0; k < longest; ++k) {
      auto const point = static_cast<char32_t>(bytes.number(4 * (i * longest + k), 4));
      if (point == 0) break;
      text += to_utf8(point > 0x10FFFF || (point >= 0xD800 && point < 0xE000) ? U'\uFFFD' : point);
    }
  }
  return result;
}

std::map<std::string, NpyArray> read_npz(std::filesystem::path const& path) {
  std::string const content = read_file(path), name = path.string();
  Bytes const bytes(content, name);
  constexpr std::uint64_t end_size = 22;
  if (bytes.size() < end_size || bytes.at(bytes.size() - end_size, 4) != "PK\x05\x06") bytes.refuse("is no .npz file, or is cut off");
  auto const end = bytes.size() - end_size;
  std::map<std::string, NpyArray> arrays;
  auto at = bytes.number(end + 16, 4);
  std::uint64_t all = 0;  // bytes of the arrays: entries that name the same ones would make much of a small file
  for (auto left = bytes.number(end + 10, 2); left > 0; --left) {
    if (bytes.at(at, 4) != "PK\x01\x02") bytes.refuse("has a damaged directory");
    if (bytes.number(at + 10, 2) != 0) bytes.refuse("is compressed (numpy.savez writes what can be read here)");
    auto const size = bytes.number(at + 24, 4), length = bytes.number(at + 28, 2), local = bytes.number(at + 42, 4);
    std::string key(bytes.at(at + 46, length));
    if (key.ends_with(".npy")) key.resize(key.size() - 4);
    if ((all += size) > bytes.size()) bytes.refuse("has arrays that overlap");
    auto const start = local + 30 + bytes.number(local + 26, 2) + bytes.number(local + 28, 2);
    std::string npy(bytes.at(start, size));
    if (crc32(npy) != bytes.number(at + 16, 4)) bytes.refuse(fmt::format("{} is damaged", key));
    arrays.emplace(key, NpyArray{name + ": " + key, std::move(npy)});
    at += 46 + length + bytes.number(at + 30, 2) + bytes.number(at + 32, 2);
  }
  return arrays;
}

NpyArray NpyArray::of(std::string name, Tensor const& values) {
  std::vector<Index> const shape(values.shape().begin(), values.shape().end());
  auto const* const type = std::ranges::find(number_types, values.dtype(), &std::pair<std::string_view, DType>::second);
  auto const bytes = bytes_in(values);
  return {std::move(name), npy_header(std::string(type->first), shape).append(reinterpret_cast<char const*>(bytes.data()), bytes.size())};
}

NpyArray NpyArray::of(std::string name, std::vector<std::string> const& texts) {
  std::vector<std::u32string> decoded;
  std::size_t longest = 1;
  for (auto const& text : texts) {
    auto& points = decoded.emplace_back();
    for (std::size_t i = 0; i < text.size();) points += decode_utf8(text, i).value_or(0xFFFD);
    longest = std::max(longest, points.size());
  }
  std::string npy = npy_header(fmt::format("<U{}", longest), {static_cast<Index>(texts.size())});
  for (auto& points : decoded) {
    points.resize(longest);
    for (char32_t const point : points) npy += little_endian(point, 4);
  }
  return {std::move(name), std::move(npy)};
}

void write_npz(std::filesystem::path const& path, std::vector<NpyArray> const& arrays) {
  AtomicFile zip(path);
  std::string directory;
  std::uint64_t offset = 0;
  for (NpyArray const& array : arrays) {
    std::string const name = array.name + ".npy", described = description(name, array.npy), header = "PK\x03\x04" + described + name;
    // Made by version 2.0; behind the name's and extra field's lengths: no comment, the first disk, no attributes.
    directory += "PK\x01\x02" + little_endian(20, 2) + described + std::string(10, '\0') + little_endian(offset, 4) + name;
    offset += header.size() + array.npy.size();
    if (offset + directory.size() > std::numeric_limits<std::uint32_t>::max() || arrays.size() > 0xFFFF)
      throw FileError(fmt::format("{}: more than the 4 GB that such a file can hold", path.string()));
    zip.write(header);
    zip.write(array.npy);
  }
  zip.write(directory);
  zip.write("PK\x05\x06" + little_endian(0, 4) + little_endian(arrays.size(), 2) + little_endian(arrays.size(), 2) +
            little_endian(directory.size(), 4) + little_endian(offset, 4) + little_endian(0, 2));
  zip.commit();
}

}  // namespace heed
