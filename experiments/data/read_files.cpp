#include "experiments/data/read_files.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace heed {

nlohmann::json to_json(ReadFiles const& files) {
  auto json = nlohmann::json::object();
  for (auto const& [of, read] : files) json[of] = {{"file", read.file}, {"sha256", read.sha256}};
  return json;
}

ReadFiles read_files_of(nlohmann::json const& json) {
  ReadFiles files;
  if (!json.is_object()) return files;
  for (auto const& item : json.items()) {
    auto const& read = item.value();
    auto const text = [&](char const* key) { return read.contains(key) && read[key].is_string() ? read[key].get<std::string>() : ""; };
    if (read.is_object() && !text("sha256").empty()) files[item.key()] = {text("file"), text("sha256")};
  }
  return files;
}

std::optional<std::string> changed(ReadFiles const& before, ReadFiles const& now) {
  for (auto const& [of, old] : before) {
    auto const found = now.find(of);
    if (found != now.end() && found->second.sha256 != old.sha256)
      return fmt::format("{}: {} had SHA-256 {}, and {} has {}", of, old.file, old.sha256, found->second.file, found->second.sha256);
  }
  return std::nullopt;
}

}  // namespace heed
