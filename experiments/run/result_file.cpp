#include "experiments/run/result_file.hpp"

#include <nlohmann/json.hpp>

#include "autograd/error.hpp"
#include "nn/files/input_file.hpp"
#include "nn/files/json.hpp"

namespace heed {

namespace fs = std::filesystem;

nlohmann::ordered_json read_json(fs::path const& path) {
  return parse_json<nlohmann::ordered_json>(read_file(path), path.string() + ": the file");
}

std::optional<nlohmann::ordered_json> find_json(fs::path const& path) {
  auto const text = read_if_there(path);
  if (!text) return std::nullopt;
  try {
    return parse_json<nlohmann::ordered_json>(*text, path.string() + ": the file");
  } catch (FileError const&) {
    return std::nullopt;
  }
}

}  // namespace heed
