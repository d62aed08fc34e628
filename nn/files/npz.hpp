#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/tensor.hpp"

namespace heed {

/// One array of an .npz file, as the bytes of its .npy (format version 1.0; little-endian, row-major).
struct NpyArray {
  std::string name;  ///< of an array that was read: for messages, behind the file's path
  std::string npy;

  static NpyArray of(std::string name, Tensor const& values);
  /// A one-dimensional array of texts (dtype `<U…`, UTF-32 padded with zeros); the texts are UTF-8.
  static NpyArray of(std::string name, std::vector<std::string> const& texts);

  /// The numbers (dtypes `<f4`, `<f8`, `<i8`) or texts (`<U…`, flattened). Throws FileError for another dtype.
  Tensor tensor() const;
  std::vector<std::string> texts() const;
};

/// Writes arrays as numpy.savez does: an uncompressed zip archive with one NAME.npy each; `numpy.load(path)["NAME"]` reads them. The file
/// appears complete or not at all; equal arrays give equal files, of zip's first date. Throws Error, also beyond the 4 GB of a plain zip.
void write_npz(std::filesystem::path const& path, std::vector<NpyArray> const& arrays);

/// The arrays of an uncompressed .npz file, by name. Throws FileError if it is damaged or of another format.
std::map<std::string, NpyArray> read_npz(std::filesystem::path const& path);

/// CRC-32 as in zip, gzip and PNG (polynomial 0xEDB88320).
std::uint32_t crc32(std::string_view bytes);

/// The lowest `bytes` bytes of a number, least significant first.
std::string little_endian(std::uint64_t value, int bytes);

}  // namespace heed
