#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "autograd/tensor.hpp"
#include "nn/files/input_file.hpp"

namespace heed {

struct StoredType;

/// A safetensors file, open for reading: 8 bytes with the header's length (little-endian), a JSON header, and the tensors' bytes.
///
///     {"__metadata__": {"step": "12"}, "norm.weight": {"dtype": "F32", "shape": [128], "data_offsets": [0, 512]}, …}
///
/// The header is checked entirely when the file is opened; tensors are read when asked for. Stored types become heed's: F64 float64; F32,
/// F16 and BF16 float32; all integers and BOOL int64.
class SafetensorsFile {
 public:
  /// Throws FileError, its message beginning with the path, for a file that cannot be read and for an invalid header: every byte of data
  /// must belong to exactly one tensor, and a tensor's bytes must match its extents and type.
  explicit SafetensorsFile(std::filesystem::path path);

  std::filesystem::path const& path() const { return file_.path(); }
  /// The names of all tensors, in the order of their data.
  std::vector<std::string> const& names() const { return names_; }
  bool contains(std::string_view name) const { return entries_.find(name) != entries_.end(); }
  /// Throws FileError for an unknown name.
  Shape const& shape(std::string_view name) const;
  /// The dtype of tensor(name). Throws FileError for an unknown name.
  DType dtype(std::string_view name) const;
  /// A tensor in its own array. Throws FileError for an unknown name, a U64 beyond int64's range, and a file that was changed since opened.
  Tensor tensor(std::string_view name) const;
  /// The strings of `__metadata__`; empty if there are none.
  std::map<std::string, std::string> const& metadata() const { return metadata_; }
  /// Reads the whole file; throws FileError if it is sealed (sha256.hpp) and was modified.
  void check_seal() const;

 private:
  struct StoredTensor {
    StoredType const* type;
    Shape shape;
    std::size_t begin, end;  // within the data
  };
  [[noreturn]] void refuse(std::string const& what) const;
  std::string header() const;
  void add_metadata(nlohmann::json const& value);
  void add_entry(std::string const& name, nlohmann::json const& value);
  void check_layout() const;
  StoredTensor const& entry(std::string_view name) const;

  InputFile file_;
  std::size_t data_begin_ = 0, data_size_ = 0;  // what follows the header
  std::map<std::string, StoredTensor, std::less<>> entries_;
  std::vector<std::string> names_;
  std::map<std::string, std::string> metadata_;
};

/// Writes tensors and metadata as one safetensors file, atomically (AtomicFile): at any moment the path holds the old file or the new.
/// Equal arguments give equal bytes. Data begin at a multiple of 8 and 64-bit types come first, otherwise in the order given, so that every
/// tensor is aligned. With `file_sha256` among the metadata, the file is sealed. Throws Error for names that are repeated, reserved or not
/// UTF-8, for an undefined tensor, and if the file cannot be written.
void save_safetensors(std::filesystem::path const& path, std::vector<std::pair<std::string, Tensor>> const& tensors,
                      std::map<std::string, std::string> const& metadata = {});

}  // namespace heed
