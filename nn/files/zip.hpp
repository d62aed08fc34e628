#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "nn/files/atomic_file.hpp"

namespace heed {

/// CRC-32 as in zip, gzip and PNG (polynomial 0xEDB88320).
std::uint32_t crc32(std::span<std::byte const> bytes);
std::uint32_t crc32(std::string_view bytes);

/// The lowest `bytes` bytes of a number, least significant first.
std::string little_endian(std::uint64_t value, int bytes);

/// Writes an uncompressed zip archive. The file appears complete when it is committed, or not at all. Equal contents give equal files: all
/// have zip's first date.
class ZipFile {
 public:
  explicit ZipFile(std::filesystem::path const& path) : path_(path), file_(path) {}
  /// Appends a file. Throws Error if it cannot be written, FileError beyond the 4 GB of a plain zip.
  void add(std::string const& name, std::span<std::byte const> content);
  void add(std::string const& name, std::string_view content) { add(name, std::as_bytes(std::span(content))); }
  /// Nothing may be added afterwards.
  void commit();

 private:
  std::filesystem::path path_;
  AtomicFile file_;
  std::string directory_;
  std::uint64_t offset_ = 0, count_ = 0;
};

}  // namespace heed
