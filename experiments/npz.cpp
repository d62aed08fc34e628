#include "experiments/npz.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "experiments/utf8.hpp"
#include "nn/atomic_file.hpp"

namespace heed {

namespace {

/// The lowest bytes of a number, the least first.
std::string little_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xFF);
  return text;
}

/// Magic number, version, and a Python dictionary, padded so that the elements begin at a multiple of 64.
std::string npy_header(std::string const& descr, std::vector<std::int64_t> const& shape) {
  std::string dictionary = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", descr, fmt::join(shape, ", "),
                                       shape.size() == 1 ? "," : "");
  constexpr std::size_t before = 10;
  dictionary.append((64 - (before + dictionary.size() + 1) % 64) % 64, ' ');
  dictionary += '\n';
  return std::string("\x93NUMPY\x01\x00", 8) + little_endian(dictionary.size(), 2) + dictionary;
}

template <class T>
std::string raw(Tensor const& values) {
  auto const bytes = std::as_bytes(values.data<T>());
  return {reinterpret_cast<char const*>(bytes.data()), bytes.size()};
}

/// What a local header and an entry of the central directory share, from "version needed" to the lengths of name and extra field. The date
/// is zip's first, so that equal arrays make equal files.
std::string description(NpyArray const& array) {
  constexpr std::uint64_t version = 20, flags = 0, stored = 0, midnight = 0, january_1st_1980 = 1 << 5 | 1;
  std::string text;
  for (std::uint64_t field : {version, flags, stored, midnight, january_1st_1980}) text += little_endian(field, 2);
  text += little_endian(crc32(array.npy), 4);
  for (int i = 0; i < 2; ++i) text += little_endian(array.npy.size(), 4);  // compressed and not
  return text + little_endian(array.name.size() + 4, 2) + little_endian(0, 2);
}

}  // namespace

NpyArray NpyArray::of(std::string name, Tensor const& values) {
  std::vector<std::int64_t> const shape(values.shape().begin(), values.shape().end());
  switch (values.dtype()) {
    case DType::float32:
      return {std::move(name), npy_header("<f4", shape) + raw<float>(values)};
    case DType::float64:
      return {std::move(name), npy_header("<f8", shape) + raw<double>(values)};
    case DType::int64:
      break;
  }
  return {std::move(name), npy_header("<i8", shape) + raw<std::int64_t>(values)};
}

NpyArray NpyArray::of(std::string name, std::vector<std::string> const& texts) {
  std::vector<std::u32string> decoded;
  std::size_t longest = 1;
  for (auto const& text : texts) {
    auto& points = decoded.emplace_back();
    for (std::size_t i = 0; i < text.size();) points += decode_utf8(text, i).value_or(0xFFFD);
    longest = std::max(longest, points.size());
  }
  std::string npy = npy_header(fmt::format("<U{}", longest), {static_cast<std::int64_t>(texts.size())});
  for (auto& points : decoded) {
    points.resize(longest);
    for (char32_t const point : points) npy += little_endian(point, 4);
  }
  return {std::move(name), std::move(npy)};
}

void write_npz(std::filesystem::path const& path, std::vector<NpyArray> const& arrays) {
  AtomicFile file(path);
  std::string directory;
  std::uint64_t offset = 0;
  for (auto const& array : arrays) {
    auto const name = array.name + ".npy";
    auto const header = "PK\x03\x04" + description(array) + name;
    // Made by version 2.0; behind the name's and extra field's lengths: no comment, the first disk, no attributes.
    directory += "PK\x01\x02" + little_endian(20, 2) + description(array) + std::string(10, '\0') + little_endian(offset, 4) + name;
    offset += header.size() + array.npy.size();
    if (offset + directory.size() > std::numeric_limits<std::uint32_t>::max() || arrays.size() > 0xFFFF)
      throw FileError(fmt::format("{}: more than the 4 GB that an .npz file can hold", path.string()));
    file.write(header);
    file.write(array.npy);
  }
  file.write(directory);
  file.write("PK\x05\x06" + little_endian(0, 4) + little_endian(arrays.size(), 2) + little_endian(arrays.size(), 2) +
             little_endian(directory.size(), 4) + little_endian(offset, 4) + little_endian(0, 2));
  file.commit();
}

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

}  // namespace heed
