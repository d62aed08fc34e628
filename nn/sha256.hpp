#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace heed {

/// SHA-256 (FIPS 180-4) of bytes that arrive in pieces.
class Sha256 {
 public:
  /// Appends bytes to the message.
  void update(std::span<std::byte const> bytes);
  /// The digest of everything so far, as 64 lower-case hexadecimal digits. More may be appended afterwards.
  std::string hex() const;

 private:
  void compress(std::byte const* block);

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> pending_{};  // the message's last length_ % 64 bytes
  std::uint64_t length_ = 0;
};

/// The digest of one piece of memory, as 64 hexadecimal digits.
std::string sha256(std::span<std::byte const> bytes);

/// The digest of a file's content, as 64 hexadecimal digits. Throws FileError if it cannot be read or changes meanwhile.
std::string sha256_of_file(std::filesystem::path const& path);

}  // namespace heed
