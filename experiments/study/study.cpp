#include "experiments/study/study.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <numeric>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "autograd/parallel.hpp"
#include "experiments/ablation/claim.hpp"
#include "experiments/folder/folder.hpp"
#include "experiments/folder/result_file.hpp"
#include "experiments/program/command.hpp"
#include "experiments/program/failure.hpp"
#include "experiments/program/progress.hpp"
#include "experiments/program/system.hpp"
#include "experiments/report/report.hpp"
#include "experiments/train/experiment.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/sha256.hpp"

namespace heed {

namespace {

/// The whole file of a study.
struct StudyFile : Settings {
  std::string name = "${study.kind}";
  Index seed = 1;
  Choice study = choice_of<StudyKind>();
  ClaimSettings claim;

  std::vector<Field> fields() override {
    return {field(&name, "name", "name of the study's folder; may contain ${key.path}"), field(&seed, "seed", "random seed").in(0, 9e15),
            field(&study, "study", "the kind of study").mandatory(),
            field(&claim, "claim", "what a paper says, and the criteria by which it holds here (heed claims)")};
  }
};

StudyFile load_study(RunOptions const& options) {
  Document document = load(options.config);
  for (auto const& override : options.overrides) assign(document, override);
  StudyFile file;
  fill(document, file);
  check_folder_name(location_of(document, "name"), "name", file.name);
  check_claim(document, file.claim);
  return file;
}

/// Throws FolderError if the folder holds anything but this study.
void compare(fs::path const& folder, StudyFile& file) {
  if (!fs::exists(folder / "config.yaml")) return;
  auto differing = differing_keys(load_kept(folder).root, tree(file));
  std::erase_if(differing, [](std::string const& key) { return is_within(key, "claim"); });  // which may be amended
  if (differing.empty()) return;
  throw FolderError(fmt::format(
      "{}: holds another configuration; what differs: {} (give another name or --output, or --fresh to put the old folder aside)",
      folder.string(), fmt::join(differing, ", ")));
}

/// What decides the measurements.
std::string measured(StudyFile file) {
  file.claim = {};
  return emit(file);
}

/// What was measured in a cell.
struct MeasuredCell {
  CsvRows rows;
  double seconds = 0;
};

/// A cell in its folder, measured now if it is not yet; nothing while another process measures it. Throws FolderError if it was measured
/// with other content of a file, FileError if it is damaged.
std::optional<MeasuredCell> found_or_measured(fs::path const& folder, StudyCell const& cell, ReadFiles const& read) {
  auto const lock = FolderLock::attempt(folder);
  if (!lock) return std::nullopt;
  if (fs::exists(folder / "summary.json")) {
    auto const summary = read_json(folder / "summary.json");
    if (auto const difference = changed(read_files_of(summary.at("read")), read))
      throw FolderError(fmt::format("{}: was measured with another content of a file: {} (put the file back, or --fresh begins anew)",
                                    folder.string(), *difference));
    return MeasuredCell{parse_csv(summary.at("results").get<std::string>()), summary.at("time.seconds").get<double>()};
  }
  auto const began = std::chrono::steady_clock::now();
  MeasuredCell measured{cell.measure()};
  measured.seconds = seconds_since(began);
  write_summary(folder, {{"results", csv_text(measured.rows)}, {"time.seconds", measured.seconds}, {"read", to_json(read)}}, {});
  return measured;
}

/// All cells in one, measured by this process and by others that make the same study.
MeasuredCell measured_cells(fs::path const& path, StudyFile& file, Study const& study, bool quiet) {
  ReadFiles read = study.read;
  read["configuration"] = {"config.yaml", sha256(measured(file))};
  std::vector<std::optional<MeasuredCell>> cells(study.cells.size());
  Progress progress(file.name, std::ssize(cells), 0, quiet, "cells");
  for (Index done = 0; done < std::ssize(cells);) {
    auto const before = done;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (cells[i]) continue;
      stop_if_interrupted();
      cells[i] = found_or_measured(path / "cells" / file_label(study.cells[i].name), study.cells[i], read);
      if (cells[i]) progress.update(++done, study.cells[i].name);
    }
    if (done == before) std::this_thread::sleep_for(std::chrono::milliseconds(100));  // others measure all that are left
  }
  progress.finish();
  MeasuredCell all;
  for (auto const& cell : cells) {
    std::ranges::copy(cell->rows, std::back_inserter(all.rows));
    all.seconds += cell->seconds;
  }
  return all;
}

/// Validates the file and prints the resolved configuration.
Exit check_study(RunOptions const& options) {
  StudyFile file = load_study(options);
  if (!options.quiet) fmt::print("{}", emit(file));
  return Exit::done;
}

/// Makes the study that the file describes: measures its cells unless they are measured already, and writes the results when all are there.
/// Throws ConfigError, FolderError, and Interrupted.
Exit run_study(RunOptions const& options) {
  if (!options.shard.empty())
    throw ConfigError("--shard", "is for ablations: processes that run the same study share its cells in any case");
  StudyFile file = load_study(options);
  fs::path const path = options.folders.output / file.name;
  if (options.fresh) put_registered_aside(path, path / "cells");
  compare(path, file);
  bool const registered = register_claim(path, file.claim, {"", {sha256(measured(file))}, path / "cells"});
  bool const finished = in_summary(path, "finished") == true;
  if (finished && !registered) {
    if (!options.quiet) fmt::print("{}: finished already (--fresh begins anew)\n", path.string());
    if (!has_report(path)) write_report(path, options.quiet);
    return Exit::done;
  }
  // Threads measure side by side what an ablation's jobs would.
  if (options.threads || options.jobs) set_threads(static_cast<int>(options.threads.value_or(1) * options.jobs.value_or(1)));
  StudyContext context{.seed = static_cast<std::uint64_t>(file.seed), .folders = options.folders, .quiet = options.quiet};
  context.folders.config_folder = fs::absolute(options.config).parent_path();
  Study const study = Registry<StudyKind>::at(file.study.kind, "study.kind: there is no").make(*file.study.settings, context);
  std::set<std::string> names;
  for (auto const& cell : study.cells)
    if (!names.insert(cell.name).second) throw ConfigError(options.config.string(), fmt::format("study: '{}' is there twice", cell.name));
  fs::create_directories(path);
  write_atomically(path / "config.yaml", emit(file));
  note_signals();
  auto const [rows, seconds] = measured_cells(path, file, study, options.quiet);
  StudyRecord record{study.report(rows), path, file.study.kind, file.name, emit(file), seconds};
  if (file.claim.given())
    std::ranges::move(claim_in_words(file.claim, finding_of(file.claim, record.csv), path), std::back_inserter(record.sentences));
  nlohmann::ordered_json more{{"seed", file.seed}};
  if (finished) more["environment"] = in_summary(path, "environment");  // of the cells, which a new claim judges
  if (!study.read.empty()) more["read"] = to_json(study.read);
  auto const text = write_study(record, more);
  if (options.quiet) return Exit::done;
  fmt::print("{}", text);
  fmt::print("{}: report.html, summary.md, results.csv ({:.1f} s)\n", path.string(), seconds);
  return Exit::done;
}

std::unique_ptr<Settings> study_file() { return std::make_unique<StudyFile>(); }

Declared<FileKind> const file_kind{{"study", run_study, check_study, study_file}};
Declared<ListTopic> const studies_topic{choice_topic(14, "studies", "studies; with NAME: its keys", [] { return choice_of<StudyKind>(); })};

}  // namespace

void stop_if_interrupted() {
  if (interrupted()) throw Interrupted("the cells that were measured are kept; the same command measures the others");
}

StudyResult result_of(std::vector<std::string> header, CsvRows const& rows) {
  StudyResult result{.csv = {std::move(header)}};
  result.csv.insert(result.csv.end(), rows.begin(), rows.end());
  return result;
}

Measured measured_mean(std::vector<double> const& x) {
  auto const n = static_cast<double>(x.size());
  double const mean = std::accumulate(x.begin(), x.end(), 0.0) / n;
  double squares = 0;
  for (double const value : x) squares += (value - mean) * (value - mean);
  return {mean, std::sqrt(squares / (n - 1) / n), {}};
}

NumberOf over(std::string column) {
  return [=](CsvLine const& line) { return line.number(column); };
}

std::vector<FigureLayer> curves_of(std::vector<LineGroup> const& groups, NumberOf const& x, double errors, Look (*look)(std::size_t)) {
  std::vector<FigureLayer> layers;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    FigureLayer layer{As::joined_intervals, {}, look(i), groups[i].name};
    for (auto const& line : groups[i].lines) {
      double const at = x(line), mean = line.number("mean"), half = errors * line.number("standard_error");
      if (std::isfinite(at)) layer.points.push_back({at, mean, mean - half, mean + half});
    }
    if (!layer.points.empty()) layers.push_back(std::move(layer));
  }
  return layers;
}

std::vector<FigureLayer> curves_beside_theory(std::vector<LineGroup> const& groups, NumberOf const& x) {
  std::vector<FigureLayer> layers;
  for (auto& measured : curves_of(groups, x, 2, solid_look)) {
    FigureLayer theory{As::line, {}, measured.look, std::exchange(measured.name, "")};
    for (auto const& line : std::ranges::find(groups, theory.name, &LineGroup::name)->lines)
      theory.points.push_back(CurvePoint::bare(x(line), line.number("theory")));
    std::ranges::sort(theory.points, {}, &CurvePoint::x);
    measured.as = As::intervals;
    layers.insert(layers.end(), {std::move(theory), std::move(measured)});
  }
  return layers;
}

Panel panel_of(std::string title, std::vector<FigureLayer> layers, bool log) {
  auto within = layers;
  for (auto& layer : within)
    for (auto& point : layer.points)
      if (log) point.low = std::max(point.low, point.y / 10);
  return {.title = std::move(title), .y = axis_over(within, log), .layers = std::move(layers)};
}

}  // namespace heed
