#include "nn/files/zip.hpp"

#include <array>
#include <limits>

#include <fmt/format.h>

#include "autograd/error.hpp"

namespace heed {

std::string little_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xFF);
  return text;
}

namespace {

/// The fields that a local header and an entry of the central directory share, from "version needed" to the lengths of name and extra
/// field.
std::string description(std::string const& name, std::span<std::byte const> content) {
  constexpr std::uint64_t version = 20, flags = 0, stored = 0, midnight = 0, january_1st_1980 = 1 << 5 | 1;
  std::string text;
  for (std::uint64_t field : {version, flags, stored, midnight, january_1st_1980}) text += little_endian(field, 2);
  text += little_endian(crc32(content), 4);
  for (int i = 0; i < 2; ++i) text += little_endian(content.size(), 4);  // compressed and not
  return text + little_endian(name.size(), 2) + little_endian(0, 2);
}

}  // namespace

void ZipFile::add(std::string const& name, std::span<std::byte const> content) {
  auto const described = description(name, content);
  auto const header = "PK\x03\x04" + described + name;
  // Made by version 2.0; behind the name's and extra field's lengths: no comment, the first disk, no attributes.
  directory_ += "PK\x01\x02" + little_endian(20, 2) + described + std::string(10, '\0') + little_endian(offset_, 4) + name;
  offset_ += header.size() + content.size();
  if (offset_ + directory_.size() > std::numeric_limits<std::uint32_t>::max() || ++count_ > 0xFFFF)
    throw FileError(fmt::format("{}: more than the 4 GB that such a file can hold", path_.string()));
  file_.write(header);
  file_.write(content);
}

void ZipFile::commit() {
  file_.write(directory_);
  file_.write("PK\x05\x06" + little_endian(0, 4) + little_endian(count_, 2) + little_endian(count_, 2) +
              little_endian(directory_.size(), 4) + little_endian(offset_, 4) + little_endian(0, 2));
  file_.commit();
}

std::uint32_t crc32(std::span<std::byte const> bytes) {
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
  for (std::byte const b : bytes) value = table[(value ^ static_cast<std::uint32_t>(b)) & 0xFF] ^ value >> 8;
  return ~value;
}

std::uint32_t crc32(std::string_view bytes) { return crc32(std::as_bytes(std::span(bytes))); }

}  // namespace heed
