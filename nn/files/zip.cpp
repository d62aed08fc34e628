#include "nn/files/zip.hpp"

#include <array>
#include <limits>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "nn/files/atomic_file.hpp"

namespace heed {

std::string little_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xFF);
  return text;
}

namespace {

/// The fields that a local header and an entry of the central directory share, from "version needed" to the lengths of name and extra
/// field.
std::string description(std::string const& name, std::string_view content) {
  constexpr std::uint64_t version = 20, flags = 0, stored = 0, midnight = 0, january_1st_1980 = 1 << 5 | 1;
  std::string text;
  for (std::uint64_t field : {version, flags, stored, midnight, january_1st_1980}) text += little_endian(field, 2);
  text += little_endian(crc32(content), 4);
  for (int i = 0; i < 2; ++i) text += little_endian(content.size(), 4);  // compressed and not
  return text + little_endian(name.size(), 2) + little_endian(0, 2);
}

}  // namespace

void write_zip(std::filesystem::path const& path, std::vector<std::pair<std::string, std::string_view>> const& files) {
  AtomicFile zip(path);
  std::string directory;
  std::uint64_t offset = 0;
  for (auto const& [name, content] : files) {
    auto const described = description(name, content), header = "PK\x03\x04" + described + name;
    // Made by version 2.0; behind the name's and extra field's lengths: no comment, the first disk, no attributes.
    directory += "PK\x01\x02" + little_endian(20, 2) + described + std::string(10, '\0') + little_endian(offset, 4) + name;
    offset += header.size() + content.size();
    if (offset + directory.size() > std::numeric_limits<std::uint32_t>::max() || files.size() > 0xFFFF)
      throw FileError(fmt::format("{}: more than the 4 GB that such a file can hold", path.string()));
    zip.write(header);
    zip.write(content);
  }
  zip.write(directory);
  zip.write("PK\x05\x06" + little_endian(0, 4) + little_endian(files.size(), 2) + little_endian(files.size(), 2) +
            little_endian(directory.size(), 4) + little_endian(offset, 4) + little_endian(0, 2));
  zip.commit();
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
