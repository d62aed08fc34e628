#include "experiments/data/catalogue.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/data/download.hpp"
#include "experiments/data/files.hpp"
#include "experiments/data/reading.hpp"
#include "nn/files/sha256.hpp"

namespace heed {
namespace {

namespace fs = std::filesystem;

CatalogueFile read_file(Yaml::Entry const& part) {
  CatalogueFile file;
  file.part = part.key;
  for (auto const& [key, place, value] : entries_of(part.value, "a file", {"path", "url", "sha256", "bytes"})) {
    if (key == "path") file.path = text_of(value, "path");
    if (key == "url") file.url = text_of(value, "url");
    if (key == "sha256") file.sha256 = text_of(value, "sha256");
    if (key == "bytes") file.bytes = static_cast<std::int64_t>(number_of(value, "bytes", 1, 1e12));
    if (key == "path" && (fs::path(file.path).is_absolute() || file.path.find("..") != std::string::npos))
      refuse(value.place, "path must stay inside the data folder");
    if (key == "sha256" && (file.sha256.size() != 64 || file.sha256.find_first_not_of("0123456789abcdef") != std::string::npos))
      refuse(value.place, "sha256 must be 64 hexadecimal digits");
  }
  if (file.path.empty() || file.url.empty() || file.sha256.empty() || file.bytes == 0)
    refuse(part.place, fmt::format("'{}' needs path, url, sha256 and bytes", part.key));
  return file;
}

CatalogueEntry read_entry(Yaml::Entry const& named) {
  CatalogueEntry result;
  result.name = named.key;
  for (auto const& entry : entries_of(named.value, "'" + named.key + "'", {"about", "licence", "text", "train", "validation", "test"})) {
    if (entry.key == "about")
      result.about = text_of(entry.value, "about");
    else if (entry.key == "licence")
      result.licence = text_of(entry.value, "licence");
    else
      result.files.push_back(read_file(entry));
  }
  if (result.about.empty() || result.licence.empty()) refuse(named.place, fmt::format("'{}' needs about and licence", named.key));
  bool const whole = result.part("text") && result.files.size() == 1;
  bool const split = result.part("train") && result.part("validation") && !result.part("text");
  if (!whole && !split) refuse(named.place, fmt::format("'{}' needs either the file text, or train and validation (and test)", named.key));
  return result;
}

}  // namespace

CatalogueFile const* CatalogueEntry::part(std::string_view wanted) const {
  auto const found = std::find_if(files.begin(), files.end(), [&](CatalogueFile const& file) { return file.part == wanted; });
  return found == files.end() ? nullptr : &*found;
}

std::vector<CatalogueEntry> read_catalogue(std::string_view text, std::string const& path) {
  auto const yaml = parse_data(text, path);
  std::vector<CatalogueEntry> entries;
  for (auto const& entry : entries_of(yaml, "the catalogue")) entries.push_back(read_entry(entry));
  return entries;
}

std::vector<CatalogueEntry> const& catalogue() {
  static auto const entries = read_catalogue(read_text(shipped("catalogue.yaml")), shipped("catalogue.yaml").string());
  return entries;
}

CatalogueEntry const& catalogue_entry(std::vector<CatalogueEntry> const& entries, std::string const& name) {
  std::vector<std::string> names;
  for (auto const& entry : entries) {
    if (entry.name == name) return entry;
    names.push_back(entry.name);
  }
  throw Error(fmt::format("data.name: '{}' is not in the catalogue{}", name, did_you_mean(name, names)));
}

fs::path obtain(CatalogueFile const& file, DataContext const& context) {
  auto const data = data_folder(context), cache = cache_folder();
  auto const given = data / file.path, cached = cache / file.path;
  std::error_code unreadable;
  if (data != cache && fs::exists(given, unreadable)) {
    if (auto const hash = sha256_of_file(given); hash != file.sha256)
      throw FileError(fmt::format("{}: has SHA-256 {}, but the catalogue says {} (data.path uses a file of your own)", given.string(), hash,
                                  file.sha256));
    return given;
  }
  if (cache.empty()) throw Error("neither XDG_CACHE_HOME nor HOME is set: no folder to keep fetched data in (--data DIR names one)");
  if (fs::exists(cached, unreadable) && sha256_of_file(cached) == file.sha256) return cached;
  try {
    download(file.url, cached, file.sha256, file.bytes, context.quiet);
  } catch (FileError const& error) {
    throw FileError(
        fmt::format("{}; put the file there by hand, or at {} below a folder that --data or HEED_DATA names", error.what(), file.path));
  }
  return cached;
}

}  // namespace heed
