#include "experiments/study/unfinished.hpp"

#include <span>
#include <vector>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "nn/files/safetensors.hpp"
#include "nn/files/sha256.hpp"

namespace heed {

namespace fs = std::filesystem;

namespace {

std::span<std::byte const> bytes_of(Tensor const& tensor) {
  switch (tensor.dtype()) {
    case DType::float32:
      return std::as_bytes(tensor.data<float>());
    case DType::float64:
      return std::as_bytes(tensor.data<double>());
    case DType::int64:
      break;
  }
  return std::as_bytes(tensor.data<std::int64_t>());
}

/// Of names and elements.
std::string digest(PartOfCell const& part) {
  Sha256 hash;
  for (auto const& [name, tensor] : part) {
    hash.update(std::as_bytes(std::span(name)));
    hash.update(bytes_of(tensor));
  }
  return hash.hex();
}

}  // namespace

void keep_part(fs::path const& file, PartOfCell const& part) {
  if (file.empty()) return;
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  if (error) throw Error(fmt::format("{}: cannot be made: {}", file.parent_path().string(), error.message()));
  save_safetensors(file, {part.begin(), part.end()}, {{"sha256", digest(part)}});
}

PartOfCell kept_part(fs::path const& file) {
  PartOfCell part;
  std::error_code unreadable;
  if (file.empty() || !fs::is_regular_file(file, unreadable)) return part;
  try {
    SafetensorsFile const kept(file);
    for (auto const& name : kept.names()) part.emplace(name, kept.tensor(name));
    auto const hash = kept.metadata().find("sha256");
    if (hash == kept.metadata().end() || hash->second != digest(part)) part.clear();
  } catch (FileError const&) {
    part.clear();
  }
  return part;
}

}  // namespace heed
