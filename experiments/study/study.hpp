#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/data/files.hpp"
#include "experiments/report/parts.hpp"
#include "experiments/run/session.hpp"
#include "nn/settings.hpp"

namespace heed {

/// A study measures without training. Its file has the key `study:` (a kind with its keys, or the kind alone), `name:` and `seed:`.
///
///     name: softmax-scaling
///     study: {kind: softmax_scaling, d_k: [1, 16, 256], keys: [10]}
///
/// Output in runs/NAME/: config.yaml, results.csv, summary.md, summary.json, report.html and figures/.
bool is_study(Document const& document);

/// Makes the study that the file describes; reports if it is finished already, and resumes an interrupted one. Throws ConfigError,
/// FolderError. Returns done or interrupted.
Exit run_study(RunOptions const& options);

/// Validates the file and prints the resolved configuration.
Exit check_study(RunOptions const& options);

/// Default settings of a whole file with a study, for its schema.
std::unique_ptr<Settings> study_file();

/// The result of a study.
struct StudyResult {
  std::vector<std::vector<std::string>> csv;            ///< results.csv, its header first
  std::vector<StudyTable> tables;                       ///< for the terminal and summary.md
  std::vector<std::string> sentences;                   ///< the findings in words
  std::vector<std::pair<std::string, double>> figures;  ///< for summary.json
};

/// The context of a study, besides its settings.
struct StudyContext {
  std::string name = "study";
  std::uint64_t seed = 1;
  Places places{};
  bool quiet = true;
  std::vector<std::vector<std::string>> kept = {};         ///< the csv saved before an interruption; empty: none
  std::function<void(StudyResult const&)> keep = nullptr;  ///< saves what was measured so far; may be absent
  std::filesystem::path unfinished = {};                   ///< folder for partly measured cells (keep_part); empty: none
  /// Called with each file that is measured, beforehand; may be absent. Throws FolderError if saved results were measured with other
  /// content.
  std::function<void(std::string const& of, HashedFile const& file)> note_read = nullptr;
};

/// A kind of study: its name and help, default settings, and how to make it.
struct StudyKind {
  std::string name, help;
  std::function<std::shared_ptr<Settings>()> settings;
  /// Nothing if interrupted.
  std::function<std::optional<StudyResult>(Settings const&, StudyContext const&)> measure;
  /// The parts of its page; may be absent. Throws FileError for a results.csv of another format.
  std::function<std::vector<StudyPart>(StudyRecord const&)> present = {};

  void declare() const { Declared<StudyPage>({name, help, present}); }
};

/// `Declared<StudyKind> const worked_example_study{study_kind("worked_example", "…", work_example)};`
template <class S>
StudyKind study_kind(std::string name, std::string help, std::optional<StudyResult> (*measure)(S const&, StudyContext const&),
                     std::vector<StudyPart> (*present)(StudyRecord const&) = nullptr) {
  return {std::move(name), std::move(help), [] { return std::make_shared<S>(); },
          [measure](Settings const& settings, StudyContext const& context) { return measure(dynamic_cast<S const&>(settings), context); },
          present};
}

/// Makes the study that a filled-in choice_of<StudyKind>() describes.
std::optional<StudyResult> measure(Choice const& study, StudyContext const& context);

}  // namespace heed
