#pragma once

#include "nn/files/npz.hpp"
#include "tests/folder.hpp"

namespace heed::test {

inline std::uint64_t number(std::string const& bytes, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes.at(at + i))) << (8 * i);
  return value;
}

struct Npy {
  std::string header, data;
};

/// Reads a zip from its end, as zip readers do, and holds the directory against the local headers.
inline std::map<std::string, Npy> read_npz(std::filesystem::path const& path) {
  auto const bytes = test::get(path);
  auto const end = bytes.size() - 22;
  REQUIRE(bytes.substr(end, 4) == "PK\x05\x06");
  std::map<std::string, Npy> arrays;
  auto at = number(bytes, end + 16, 4);
  CHECK(at + number(bytes, end + 12, 4) == end);
  for (auto left = number(bytes, end + 10, 2); left > 0; --left) {
    REQUIRE(bytes.substr(at, 4) == "PK\x01\x02");
    auto const length = number(bytes, at + 28, 2), size = number(bytes, at + 24, 4), local = number(bytes, at + 42, 4);
    auto const name = bytes.substr(at + 46, length);
    REQUIRE(bytes.substr(local, 4) == "PK\x03\x04");
    CHECK(bytes.substr(local + 4, 26) == bytes.substr(at + 6, 26));  // everything that both say
    CHECK(bytes.substr(local + 30, length) == name);
    auto const npy = bytes.substr(local + 30 + length, size);
    CHECK(number(bytes, at + 16, 4) == crc32(npy));
    REQUIRE(npy.substr(0, 8) == std::string("\x93NUMPY\x01\x00", 8));
    auto const header = number(npy, 8, 2);
    CHECK((10 + header) % 64 == 0);
    CHECK(npy[9 + header] == '\n');
    arrays[name] = {npy.substr(10, npy.find('}') - 9), npy.substr(10 + header)};
    at += 46 + length;
  }
  CHECK(at == end);
  return arrays;
}

inline std::vector<double> doubles(Npy const& array) {
  std::vector<double> values(array.data.size() / sizeof(double));
  std::memcpy(values.data(), array.data.data(), array.data.size());
  return values;
}

}  // namespace heed::test
