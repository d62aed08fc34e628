#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/tensor.hpp"

namespace heed {

/// One array of an .npz file, as the bytes of its .npy (format version 1.0; little-endian, row-major).
struct NpyArray {
  std::string name;  ///< of one that was read, for messages: behind the file's path
  std::string npy;

  static NpyArray of(std::string name, Tensor const& values);
  /// A one-dimensional array of texts (dtype `<U…`, UTF-32 padded with zeros); the texts are UTF-8.
  static NpyArray of(std::string name, std::vector<std::string> const& texts);

  /// The numbers (dtypes `<f4`, `<f8`, `<i8`) or texts (`<U…`, flattened) that it holds. Throws FileError if it holds something else.
  Tensor tensor() const;
  std::vector<std::string> texts() const;
};

/// Writes arrays as numpy.savez does: a zip archive, not compressed, of one NAME.npy each; `numpy.load(path)["NAME"]` reads them. The file
/// appears whole or not at all. Throws Error, also beyond the 4 GB of a plain zip.
void write_npz(std::filesystem::path const& path, std::vector<NpyArray> const& arrays);

/// The arrays of an .npz file that is not compressed, by name. Throws FileError if it is damaged or no such file.
std::map<std::string, NpyArray> read_npz(std::filesystem::path const& path);

}  // namespace heed
