#include "experiments/result_file.hpp"

#include <cerrno>
#include <cstring>
#include <iterator>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/error.hpp"
#include "nn/json.hpp"

namespace heed {

namespace fs = std::filesystem;

std::ifstream open_result(fs::path const& path) {
  auto const refuse = [&](std::string const& why) { throw FileError(fmt::format("{}: cannot be read: {}", path.string(), why)); };
  std::error_code unreadable;
  auto const status = fs::status(path, unreadable);
  if (status.type() == fs::file_type::none) refuse(unreadable.message());
  if (fs::exists(status) && !fs::is_regular_file(status)) refuse(fs::is_directory(status) ? "it is a folder" : "it is no regular file");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse(std::strerror(errno));
  return file;
}

std::string read_result(fs::path const& path) {
  auto file = open_result(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

nlohmann::ordered_json read_json(fs::path const& path) {
  return parse_json<nlohmann::ordered_json>(read_result(path), path.string() + ": the file");
}

std::optional<nlohmann::ordered_json> find_json(fs::path const& path) try { return read_json(path); } catch (FileError const&) {
  return std::nullopt;
}

}  // namespace heed
