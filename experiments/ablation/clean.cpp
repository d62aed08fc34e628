#include "experiments/ablation/clean.hpp"

#include <algorithm>
#include <iostream>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "experiments/run/command.hpp"
#include "experiments/run/folder.hpp"
#include "experiments/run/result_file.hpp"

namespace heed {

namespace fs = std::filesystem;

namespace {

/// The names of the trials in the ablation's latest tables (summary.json); nothing if there are none or they do not list their trials.
std::optional<std::set<std::string>> trials_in_tables(fs::path const& ablation) {
  auto const summary = find_json(ablation / "summary.json");
  if (!summary || !summary->is_object() || !summary->contains("ablation")) return std::nullopt;
  auto const trials = summary->find("trials");
  if (trials == summary->end() || !trials->is_array()) return std::nullopt;
  std::set<std::string> names;
  for (auto const& name : *trials)
    if (name.is_string()) names.insert(name.get<std::string>());
  return names;
}

/// Whether a name has the form ARM-seedK-HASH, with eight hexadecimal digits.
bool is_trial(std::string const& name) {
  constexpr std::string_view digits = "0123456789", hash_digits = "0123456789abcdef";
  auto const dash = name.rfind('-');
  if (dash == name.npos || name.size() - dash != 9 || name.find_first_not_of(hash_digits, dash + 1) != name.npos) return false;
  auto const seed = name.rfind("-seed", dash);
  return seed != name.npos && name.find_first_not_of(digits, seed + 5) == dash;
}

}  // namespace

std::vector<fs::path> old_trials(fs::path const& ablation) {
  std::vector<fs::path> old;
  auto const names = trials_in_tables(ablation);
  if (!names) return old;
  for (auto const& entry : fs::directory_iterator(ablation)) {
    auto const name = entry.path().filename().string();
    if (entry.is_directory() && !entry.is_symlink() && is_trial(name) && !names->contains(name)) old.push_back(entry.path());
  }
  std::ranges::sort(old);
  return old;
}

Exit clean(std::vector<fs::path> const& folders, Places const& places, std::ostream& out) {
  for (auto const& given : folders) {
    auto const found = find_run(given, places);
    fs::path const folder = found.has_filename() ? found : found.parent_path();
    if (!trials_in_tables(folder))
      throw ConfigError(folder.string(),
                        "is not the folder of an ablation with tables that name its trials: heed run on its file writes them");
    FolderLock const held(folder);
    auto const old = old_trials(folder);
    if (old.empty()) {
      out << fmt::format("{}: there are no old trials\n", folder.string());
      continue;
    }
    fs::path const target = free_name_beside(folder);
    fs::create_directory(target);
    for (auto const& trial : old) {
      FolderLock const own(trial);
      fs::rename(trial, target / trial.filename());
    }
    out << fmt::format("{}: {} old trial{} moved to {}\n", folder.string(), old.size(), old.size() == 1 ? "" : "s", target.string());
  }
  return Exit::done;
}

namespace {

struct CleanOptions {
  std::vector<std::filesystem::path> ablations;
  Places places;
};

void declare_clean(CLI::App& app, CleanOptions& options) {
  add_arguments(app, "ABLATION", "ablations' folders, or their names in the output folder", options.ablations);
}

Declared<Command> const clean_command{
    {.place = 14,
     .name = "clean",
     .usage = "ABLATION …",
     .help = "move away the trials of earlier versions of an ablation's file",
     .footer = "They are moved to a folder beside the ablation's, NAME.old-1.\n\nexample:\n  heed clean runs/positions",
     .add = with_options<CleanOptions>(declare_clean,
                                       [](CleanOptions const& options) { return clean(options.ablations, options.places, std::cout); })}};

}  // namespace

}  // namespace heed
