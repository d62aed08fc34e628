#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

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

/// One number of a study.
struct Measured {
  double mean = 0, standard_error = 0;
  std::optional<double> theory = {};
};

/// The mean of n numbers with the standard error for independent ones.
Measured measured_mean(std::vector<double> const& x);

/// A line of results.csv: texts and numbers, each as it is.
template <class... Fields>
CsvRows::value_type line_of(Fields const&... fields) {
  return {fmt::format("{}", fields)...};
}

/// A number of a line: that of a column.
using NumberOf = std::function<double(CsvLine const&)>;
NumberOf over(std::string column);

/// For each group a curve of means at x with so many standard errors on both sides. A line whose x is not finite is left out, and so are
/// curves without points.
std::vector<FigureLayer> curves_of(std::vector<LineGroup> const& groups, NumberOf const& x, double errors = 2,
                                   Look (*look)(std::size_t) = look_of);
/// For each group a line of theory, and the means as points upon it.
std::vector<FigureLayer> curves_beside_theory(std::vector<LineGroup> const& groups, NumberOf const& x);
/// A panel of layers with their axis of y. A logarithmic one has room for intervals down to a tenth of the value.
Panel panel_of(std::string title, std::vector<FigureLayer> layers, bool log = false);

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
