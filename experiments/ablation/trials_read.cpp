#include "experiments/ablation/trials_read.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "experiments/folder/result_file.hpp"
#include "experiments/train/session.hpp"
#include "nn/files/sha256.hpp"

namespace heed {

namespace fs = std::filesystem;

namespace {

/// The section that a file was read for: the weights', or the data's.
std::string section_of(LoadedExperiment const& trial, std::string const& of) {
  Experiment settings = trial.settings;
  Yaml const whole = tree(settings);
  Yaml const* const section = whole.find(of.starts_with("init.") ? "init" : "data");
  return section == nullptr ? "" : emit_line(*section);
}

}  // namespace

void TrialsRead::add(LoadedExperiment const& trial) { add(trial, files_read_in(folder_of(trial)), trial.settings.name); }

void TrialsRead::add(LoadedExperiment const& trial, ReadFiles const& read, std::string const& by) {
  for (auto const& [of, file] : read) {
    hold(section_of(trial, of) + "\n" + of, {of, file, by});
    if (!file.file.empty()) hold(file.file, {of, file, by});
  }
}

void TrialsRead::hold(std::string const& key, ReadFile const& seen) {
  auto const& [of, file, by] = seen_.emplace(key, seen).first->second;
  if (file.sha256 == seen.file.sha256) return;
  auto text = fmt::format("{}: {} with SHA-256 {} ({}), and {} with {} ({})", of, file.file, file.sha256, by, seen.file.file,
                          seen.file.sha256, seen.by);
  differences_.emplace(file.sha256 + seen.file.sha256, std::move(text));
}

bool TrialsRead::hold_against_files() {
  auto const files = seen_;
  bool all = true;
  for (auto const& [key, seen] : files) {
    auto const& file = seen.file.file;
    std::error_code unreadable;
    if (key != file) continue;
    bool const there = fs::is_regular_file(file, unreadable);
    all = all && there;
    if (there) hold(key, {seen.of, {file, sha256_of_file(file)}, "now"});
  }
  return all;
}

std::string TrialsRead::differences() const {
  std::string all;
  for (auto const& [hashes, text] : differences_) all += (all.empty() ? "" : "; ") + text;
  return all;
}

}  // namespace heed
