#include "experiments/folder/result_file.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/error.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/checkpoint.hpp"
#include "nn/files/input_file.hpp"
#include "nn/files/json.hpp"
#include "nn/files/safetensors.hpp"
#include "nn/files/sha256.hpp"

namespace heed {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

constexpr char const* interruptions_name = "interruptions.json";

Json unsealed(std::string const& text, fs::path const& path) {
  auto json = parse_json<Json>(text, path.string() + ": the file");
  if (!seal_holds(text))
    throw FileError(fmt::format("{}: is damaged, or was changed: its content is not that of its {}", path.string(), seal_name));
  return json;
}

/// The SHA-256 of each file.
Json hashes_in(fs::path const& folder) {
  auto const files = in_summary(folder, "files");
  return files.is_object() ? files : Json::object();
}

}  // namespace

Json read_json(fs::path const& path) { return unsealed(read_file(path), path); }

std::optional<Json> find_json(fs::path const& path) {
  auto const text = read_if_there(path);
  if (!text) return std::nullopt;
  try {
    return unsealed(*text, path);
  } catch (FileError const&) {
    return std::nullopt;
  }
}

Json in_summary(fs::path const& folder, std::string const& key) {
  auto const summary = find_json(folder / "summary.json");
  return summary && summary->is_object() ? summary->value(key, Json()) : Json();
}

void write_summary(fs::path const& folder, Json summary, std::vector<std::string> const& files) {
  for (auto const& file : files)
    if (is_there(folder / file)) summary["files"][file] = sha256_of_file(folder / file);
  summary[std::string(seal_name)] = open_seal();
  write_atomically(folder / "summary.json", sealed(json_text(summary, 2) + "\n"));
}

void check_written(fs::path const& folder, std::string const& file) {
  auto const files = hashes_in(folder);
  if (!files.contains(file) || files[file] == sha256_of_file(folder / file)) return;
  throw FileError(
      fmt::format("{}: is not as it was when summary.json was written: damaged, changed, or of another run (--fresh trains anew)",
                  (folder / file).string()));
}

std::vector<std::string> files_written(fs::path const& folder) {
  auto const files = hashes_in(folder);
  return mapped(files.items(), [](auto const& item) { return item.key(); });
}

Document load_kept(fs::path const& folder) {
  fs::path const file = folder / "config.yaml";
  std::error_code missing;
  if (fs::is_other(file, missing)) throw FileError(fmt::format("{}: cannot be read: not a regular file", file.string()));
  return load(file);
}

ReadFiles files_read_by(std::map<std::string, std::string> const& metadata) {
  auto const read = metadata.find("read");
  if (read == metadata.end()) return {};  // written by an earlier revision
  return read_files_of(parse_json<nlohmann::json>(read->second, "checkpoint.safetensors: what it has read"));
}

ReadFiles files_read_in(fs::path const& folder) try {
  if (auto const read = in_summary(folder, "read"); !read.is_null()) return read_files_of(read);
  return has_checkpoint(folder) ? files_read_by(SafetensorsFile(folder / "checkpoint.safetensors").metadata()) : ReadFiles();
} catch (FileError const&) {
  return {};
}

Interruptions interruptions_of(fs::path const& folder) try {
  auto const record = find_json(folder / interruptions_name);
  Json const counts = record ? *record : in_summary(folder, "interruptions");
  if (!counts.is_object()) return {};
  return {counts.value("preempted", Index{0}), counts.value("timed_out", Index{0})};
} catch (Error const&) {
  return {};
} catch (nlohmann::json::exception const&) {  // values of other types
  return {};
}

void record_interruption(fs::path const& folder, StopReason reason) try {
  if (reason == StopReason::asked) return;
  Interruptions counts = interruptions_of(folder);
  ++(reason == StopReason::preempted ? counts.preempted : counts.timed_out);
  write_atomically(folder / interruptions_name, json_text(as_json(counts), 2) + "\n");
} catch (Error const&) {
}

Json as_json(Interruptions const& counts) { return {{"preempted", counts.preempted}, {"timed_out", counts.timed_out}}; }

void forget_interruptions(fs::path const& folder) {
  std::error_code ignored;
  fs::remove(folder / interruptions_name, ignored);
}

}  // namespace heed
