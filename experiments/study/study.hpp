#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "experiments/config/config.hpp"
#include "experiments/data/files.hpp"
#include "experiments/program/failure.hpp"
#include "experiments/program/run_options.hpp"
#include "experiments/report/parts.hpp"
#include "experiments/train/session.hpp"
#include "nn/settings.hpp"

namespace heed {

/// A result without findings: rows below a header.
StudyResult result_of(std::vector<std::string> header, CsvRows const& rows);

/// The mean of a line of results.csv at x, with so many standard errors on both sides.
CurvePoint point_at(CsvLine const& line, double x, double errors = 2);

/// What is measured at once: a point of the grid, a head of a run, a stack of layers.
struct StudyCell {
  std::string name;                  ///< different from all others
  std::function<CsvRows()> measure;  ///< throws as stop_if_interrupted()
};

/// A study measures without training. Its file has the key `study:` (a kind with its keys, or the kind alone), `name:` and `seed:`.
///
///     name: softmax-scaling
///     study: {kind: softmax_scaling, d_k: [1, 16, 256], keys: [10]}
///
/// Output in runs/NAME/: config.yaml, results.csv, summary.md, summary.json, report.html and figures/. Each cell is a trial: a folder of
/// its own, which the process that measures it locks, so that any number of processes share the cells of one study.
struct Study {
  std::vector<StudyCell> cells;
  std::function<StudyResult(CsvRows const& rows)> report;  ///< `rows`: of all cells, in their order
  ReadFiles read = {};                                     ///< the files that it measures
};

/// The context of a study, besides its settings.
struct StudyContext {
  std::uint64_t seed = 1;
  Folders folders{};
  bool quiet = true;
};

/// Throws Interrupted if a signal has been noted. A cell that has begun is then measured anew another time.
void stop_if_interrupted();

/// A kind of study: its name and help, default settings, and how to make it.
struct StudyKind {
  std::string name, help;
  std::function<std::shared_ptr<Settings>()> settings;
  /// The settings must outlive the study.
  std::function<Study(Settings const&, StudyContext const&)> make;
  /// The parts of its page; may be absent. Throws FileError for a results.csv of another format.
  std::function<std::vector<StudyPart>(StudyRecord const&)> present = {};

  void declare() const { Declared<StudyPage>({name, help, present}); }
};

/// `Declared<StudyKind> const worked_example_study{study_kind("worked_example", "…", worked_example)};`
template <class S>
StudyKind study_kind(std::string name, std::string help, Study (*make)(S const&, StudyContext const&),
                     std::vector<StudyPart> (*present)(StudyRecord const&) = nullptr) {
  return {std::move(name), std::move(help), [] { return std::make_shared<S>(); },
          [make](Settings const& settings, StudyContext const& context) { return make(dynamic_cast<S const&>(settings), context); },
          present};
}

}  // namespace heed
