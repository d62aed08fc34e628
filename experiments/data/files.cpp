#include "experiments/data/files.hpp"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/error.hpp"
#include "experiments/config/build_info.hpp"
#include "experiments/config/config.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/data/catalogue.hpp"
#include "experiments/data/open.hpp"
#include "nn/files/input_file.hpp"
#include "nn/files/json.hpp"
#include "nn/files/sha256.hpp"
#include "nn/files/utf8.hpp"

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

fs::path cache_folder() {
  if (auto const* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache) return fs::path(cache) / "heed";
  if (auto const* home = std::getenv("HOME"); home && *home) return fs::path(home) / ".cache" / "heed";
  return {};
}

fs::path data_folder(DataContext const& context) {
  if (!context.data_folder.empty()) return context.data_folder;
  if (auto const* folder = std::getenv("HEED_DATA"); folder && *folder) return folder;
  return cache_folder();
}

namespace {

/// Whether a file may be what was written as a relative path: it ends in it, steps up left out.
bool may_be(fs::path const& file, fs::path const& written) {
  std::vector<fs::path> whole(file.begin(), file.end()), end;
  for (auto const& part : written.lexically_normal())
    if (part != "..") end.push_back(part);
  return end.size() <= whole.size() && std::equal(end.rbegin(), end.rend(), whole.rbegin());
}

/// What a finished run has read under a path: a file, or a folder and those of its files.
struct ReadByRun {
  fs::path path;
  std::vector<HashedFile> files;
};

/// Nothing if `folder` is not that of a finished run, or if the path is ambiguous.
std::optional<ReadByRun> known_to_run(fs::path const& folder, std::string const& path) {
  auto const text = read_if_there(folder / "summary.json");
  if (!text) return std::nullopt;
  fs::path const written = path.ends_with('/') ? path.substr(0, path.size() - 1) : path;
  std::vector<ReadByRun> known;
  try {
    auto const summary = parse_json<nlohmann::json>(*text, "summary.json");
    for (auto const& [of, each] : read_files_of(summary.is_object() ? summary.value("read", nlohmann::json()) : nlohmann::json()))
      for (auto const& candidate : {fs::path(each.file), fs::path(each.file).parent_path()})
        if (may_be(candidate, written)) {
          if (known.empty() || known.front().path != candidate) known.push_back({candidate, {}});
          known.front().files.push_back(each);
          break;
        }
  } catch (FileError const&) {
    return std::nullopt;
  }
  return known.size() == 1 ? std::optional(known.front()) : std::nullopt;
}

std::string hash_of(fs::path const& path) { return is_folder(path) ? sha256(read_text_files(path).content) : sha256_of_file(path); }

/// The path, if its files are still what the run has read. `missing`: why it is needed.
fs::path unchanged(ReadByRun const& known, std::string const& missing) {
  for (auto const& [file, sha256] : known.files) {
    if (!is_there(file)) throw FileError(fmt::format("{}, nor as {}, which the run has read", missing, file));
    if (auto const now = hash_of(file); now != sha256)
      throw FileError(fmt::format("{}; {} is no longer what the run has read: its SHA-256 was {}, and is {}", missing, file, sha256, now));
  }
  return known.path;
}

std::vector<fs::path> files_in(fs::path const& folder) try {
  std::vector<fs::path> files;
  for (auto entry = fs::recursive_directory_iterator(folder); entry != fs::recursive_directory_iterator(); ++entry) {
    if (entry->path().filename().string().starts_with('.')) {
      entry.disable_recursion_pending();
      continue;
    }
    if (!entry->is_directory()) files.push_back(entry->path());
  }
  std::ranges::sort(files);
  return files;
} catch (fs::filesystem_error const& error) {
  throw FileError(fmt::format("{}: {}", folder.string(), error.code().message()));
}

}  // namespace

fs::path locate(std::string const& path, DataContext const& context) try {
  return fs::absolute(resolve_path(path, context.config_folder, data_folder(context)));
} catch (ConfigError const& error) {
  if (!context.runs.empty() && is_folder(context.runs / path)) return fs::absolute(context.runs / path);
  auto const known = fs::path(path).is_relative() ? known_to_run(context.config_folder, path) : std::nullopt;
  if (known && !context.data_folder.empty())
    throw FileError(fmt::format("{}; the run has read {}, which is looked for without --data", error.what(), known->path.string()));
  if (known) {
    auto found = unchanged(*known, error.what());
    if (context.elsewhere != nullptr) context.elsewhere->push_back(found.string());
    return found;
  }
  for (auto const& entry : catalogue())
    for (auto const& file : entry.files)
      if (file.path == path) throw FileError(fmt::format("{}; the catalogue has it: data.name: {} fetches it", error.what(), entry.name));
  if (!context.runs.empty() && path.find('/') == path.npos)
    throw FileError(fmt::format("{}, nor as a run in {}, which heed run makes of its configuration", error.what(), context.runs.string()));
  throw FileError(error.what());
}

std::string read_text(fs::path const& path) {
  auto text = read_file(path);
  if (text.empty()) throw FileError(path.string() + ": the file is empty");
  return text;
}

fs::path shipped(std::string const& name) { return fs::path(build_info().source) / "configs" / "data" / name; }

std::string_view next_line(std::string_view text, std::size_t& begin) {
  auto const end = std::min(text.find('\n', begin), text.size());
  auto line = text.substr(begin, end - begin);
  begin = end + 1;
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

void refuse_line(std::string const& path, std::size_t line, std::string const& message) {
  throw FileError(fmt::format("{}:{}: {}", path, line, message));
}

TextFiles read_text_files(fs::path const& path) {
  if (!is_folder(path)) return {read_text(path), {0}};
  TextFiles all;
  for (auto const& file : files_in(path)) {
    auto const text = read_text(file);
    all.begins.push_back(all.content.size());
    all.content += without_byte_order_mark(text);
    if (!all.content.ends_with('\n')) all.content += '\n';
  }
  if (all.begins.empty()) throw FileError(fmt::format("{}: is a directory without files", path.string()));
  return all;
}

std::vector<std::string_view> documents_of(std::string_view text, std::vector<std::size_t> const& file_begins, Separator const& separator) {
  if (separator == "none") return {text};
  std::vector<std::string_view> documents;
  bool found = false;
  auto const add = [&](std::string_view document) {
    if (document.ends_with('\n')) document.remove_suffix(1);
    if (document.ends_with('\r')) document.remove_suffix(1);
    if (!document.empty()) documents.push_back(document);
  };
  for (std::size_t i = 0; i < file_begins.size(); ++i) {
    auto const file = text.substr(0, i + 1 < file_begins.size() ? file_begins[i + 1] : text.size()).substr(file_begins[i]);
    std::size_t first = 0;
    for (std::size_t begin = 0; begin < file.size() && separator != "file";) {
      auto const start = begin;
      auto const line = next_line(file, begin);
      if (separator == "line") documents.push_back(line);
      bool const between = separator == "blank_line" ? line.find_first_not_of(" \t\v\f\r") == line.npos : line == separator;
      if (separator == "line" || !between) continue;
      found = true;
      add(file.substr(first, start - first));
      first = std::min(begin, file.size());
    }
    if (separator != "line") add(file.substr(first));
  }
  std::vector<std::string> const words{"none", "file", "line", "blank_line"};
  if (!found && std::ranges::find(words, separator) == words.end())
    throw Error(fmt::format("no line is data.separator, '{}'{}; {} name other separators", separator, did_you_mean(separator, words),
                            listed(words)));
  return documents;
}

}  // namespace heed
