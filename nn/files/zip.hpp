#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heed {

/// CRC-32 as in zip, gzip and PNG (polynomial 0xEDB88320).
std::uint32_t crc32(std::string_view bytes);

/// The lowest `bytes` bytes of a number, least significant first.
std::string little_endian(std::uint64_t value, int bytes);

/// Writes an uncompressed zip archive of files with these names and contents, atomically. Equal contents give equal archives: all have
/// zip's first date. Throws Error if it cannot be written, FileError beyond the 4 GB of a plain zip.
void write_zip(std::filesystem::path const& path, std::vector<std::pair<std::string, std::string_view>> const& files);

}  // namespace heed
