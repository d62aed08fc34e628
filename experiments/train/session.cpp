#include "experiments/train/session.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "autograd/memory.hpp"
#include "experiments/config/table.hpp"
#include "experiments/exchange/tensorboard.hpp"
#include "experiments/folder/result_file.hpp"
#include "experiments/metric/info.hpp"
#include "experiments/metric/probe/attention_maps.hpp"
#include "experiments/metric/probe/prober.hpp"
#include "experiments/program/progress.hpp"
#include "experiments/program/system.hpp"
#include "experiments/train/finished_run.hpp"
#include "experiments/train/predictions.hpp"
#include "experiments/train/ranks.hpp"
#include "experiments/train/train.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/input_file.hpp"
#include "nn/files/number.hpp"

namespace heed {

namespace {

Declared<MetricInfo> const seconds_metric{{"time.seconds", "s", Better::lower, "training time of the run, over all calls", {.min = 0}}};
Declared<MetricInfo> const tokens_per_second_metric{{"time.tokens_per_second",
                                                     "1/s",
                                                     Better::higher,
                                                     "training tokens per second of this step, without evaluation and probes",
                                                     {.min = 0}}};
Declared<MetricInfo> const memory_metric{
    {"memory.peak", "B", Better::lower, "peak memory of tensors in a training step so far", {.min = 0}}};

using Clock = std::chrono::steady_clock;

/// The loop from where the trainer stands to the last step, with everything that it leaves on disk. Of several ranks all go through it, and
/// the first one writes.
class Session {
 public:
  Session(Trainer& trainer, Experiment& settings, fs::path const& folder, bool quiet)
      : trainer_(trainer),
        settings_(settings),
        folder_(folder),
        quiet_(quiet),
        selection_(settings.train.select, settings.train.stop),
        metrics_(folder / "metrics.jsonl", trainer.step(), [&](Row const& row) { selection_.add(row); }),
        again_(step_to_evaluate_again()),
        prober_(settings.probes, settings.train.batch, settings.train.label_smoothing, trainer.model(), trainer.parameters(),
                trainer.data(), settings.train.recompute),
        maps_(settings.probes.maps, trainer.model(), trainer.data(), folder,
              ranks().first() ? trainer.step() : std::numeric_limits<Index>::max()),
        progress_(settings.name, settings.train.steps, trainer.step(), quiet),
        saved_(has_checkpoint(folder) ? trainer.step() : -1),
        memory_(metrics_.before("memory.peak")) {
    if (settings.train.log.tensorboard) writing([&] { events_.emplace(folder, trainer.step()); });
  }

  Exit run() {
    writing([&] { metrics_.open(); });
    began_ = Clock::now();
    Index const first = trainer_.step();
    while (true) {
      Index const step = trainer_.step();
      // A signal may reach the ranks at different steps, and all stop at the same.
      bool const stop = std::ranges::any_of(ranks().gathered({interrupted() ? 1.0 : 0.0}), [](auto const& of) { return of[0] > 0; });
      bool const due = stop || trainer_.finished() || (step > 0 && step % settings_.train.checkpoint.every == 0);
      if (due && step != saved_) save();
      if (stop && !trainer_.finished()) {
        progress_.message(fmt::format("{}: saved at step {}; the same command goes on from there", folder_.string(), step));
        return Exit::interrupted;
      }
      Row row{step, {}};
      if (step % settings_.train.evaluate.every == 0 || step == settings_.train.steps || step == again_) evaluate(row);
      bool const over = trainer_.finished() || selection_.stop();
      if (over && step != saved_) save();
      if (prober_.due(step, over)) prober_.observe(row, !over);
      if (maps_.due(step, over)) writing([&] { maps_.write(step); });
      if (over) {
        finish(row, step - first);
        return Exit::done;
      }
      train(row);
    }
  }

 private:
  /// Holds the rows and best.safetensors of a run that goes on against its checkpoint, before anything is written. The best may be of a
  /// later step than the rows: of one that will be made again, and, if it was the end of a shorter run, is evaluated again, which this
  /// returns.
  Index step_to_evaluate_again() const {
    Index const every = settings_.train.log.every;
    if (trainer_.step() > 0 && metrics_.last_step() < (trainer_.step() - 1) / every * every) {
      std::string const end = metrics_.last_step() < 0 ? "holds no rows" : fmt::format("ends at step {}", metrics_.last_step());
      throw FileError(fmt::format("{}: {}, but the checkpoint is of step {}", (folder_ / "metrics.jsonl").string(), end, trainer_.step()));
    }
    if (!settings_.train.keeps_best()) return -1;
    auto const& best = selection_.best();
    Index const step = has_best(folder_) ? load_best(folder_).step : -1;
    if (step >= trainer_.step()) return step;
    if (!best || step == best->step) return -1;
    std::string const path = best_file(folder_).string();
    std::string const what = step < 0 ? "is missing" : fmt::format("is of step {}", step);
    throw FileError(
        fmt::format("{}: {}, but by metrics.jsonl the best evaluation is that of step {} (--fresh begins anew)", path, what, best->step));
  }

  void evaluate(Row& row) {
    trainer_.evaluate(row);
    if (row.values.empty()) return;
    bool const best = selection_.add(row) && settings_.train.keeps_best();
    if (best) writing([&] { save_best(folder_, trainer_.best(*selection_.best())); });
    double const excess = value_or_nan(row, "validation.excess");
    std::string asked;
    for (auto const& name : settings_.train.evaluate.metrics)
      if (double const* const value = row.find("validation." + name)) asked += fmt::format(", {} {:.4g}", name, *value);
    for (double const length : settings_.train.evaluate.lengths)
      if (MetricKey const key{.split = "validation", .name = "loss", .length = static_cast<Index>(length)};
          double const* const value = row.find(key.text()))
        asked += fmt::format(", {} at length {:.0f}", short_number(*value, 4), length);
    progress_.message(fmt::format("step {:>7}  validation loss {}, accuracy {:.1f} %{}{}{}", row.step,
                                  short_number(value_or_nan(row, "validation.loss"), 4), 100 * value_or_nan(row, "validation.accuracy"),
                                  std::isnan(excess) ? "" : fmt::format(", {} above the optimum", short_number(excess, 4)), asked,
                                  best ? ", the best so far" : ""));
  }

  /// Of training, with the calls before this one.
  double seconds_so_far() const { return metrics_.before("time.seconds") + seconds_since(began_); }

  void train(Row& row) {
    bool const probed = prober_.due(row.step, false), measured = probed || !row.values.empty();
    Index const read_before = trainer_.tokens_read();
    Clock::time_point const start = Clock::now();
    reset_memory_peak();  // evaluation and probes may need more
    trainer_.train_step(row, probed ? prober_.watch() : nullptr);
    memory_ = std::max(memory_, static_cast<double>(memory_use().peak));
    double const seconds = seconds_since(start);
    if (probed) prober_.read_step(row);
    double const loss = value_or_nan(row, "loss");
    if (measured || row.step % settings_.train.log.every == 0) {
      row.set("time.seconds", seconds_so_far());
      row.set("time.tokens_per_second", tokens_per_second(trainer_.tokens_read() - read_before, seconds));
      row.set("memory.peak", memory_);
      record(row);
    }
    double const mean_rate = tokens_per_second(trainer_.tokens_read(), seconds_since(began_));
    progress_.update(trainer_.step(), fmt::format("loss {}  {:.0f} tokens/s", short_number(loss, 4), mean_rate));
  }

  void record(Row const& row) {
    writing([&] {
      metrics_.write(row);
      if (events_) events_->write(row);
    });
  }

  /// Rows first, so that a checkpoint never stands for rows that are not there.
  void save() {
    writing([&] { metrics_.sync(); });
    Checkpoint const checkpoint = trainer_.checkpoint();
    writing([&] { save_checkpoint(folder_, checkpoint); });
    saved_ = checkpoint.step;
  }

  /// Calls f, which writes into the folder, in the first rank. That it cannot is not the data's fault, and what was saved before is still
  /// there.
  template <class F>
  void writing(F f) const {
    if (!ranks().first()) return;
    try {
      f();
    } catch (Error const& error) {
      char const* const rest = has_checkpoint(folder_) ? "the last checkpoint is whole, and the same command goes on from it"
                                                       : "no checkpoint has been made yet";
      throw Error(fmt::format("{}; {}", error.what(), rest));
    }
  }

  void finish(Row const& row, Index steps) {
    if (!row.values.empty()) record(row);
    writing([&] { metrics_.sync(); });
    ranks().barrier();  // what was written last is read
    FinishedRun const run{.trainer = trainer_,
                          .settings = settings_,
                          .selection = selection_,
                          .last = row,
                          .steps_here = steps,
                          .seconds = seconds_so_far(),
                          .seconds_here = seconds_since(began_),
                          .memory_peak = memory_};
    if (run.kept() != nullptr) trainer_.take_best(folder_);
    writing([&] { trainer_.contexts().write(folder_); });
    writing([&] { write_predictions(folder_, settings_, trainer_.data(), trainer_.model()); });
    progress_.finish();
    std::vector<std::string> files{"config.yaml", "metrics.jsonl", "loss_by_position.csv", "predictions.jsonl"};
    std::ranges::copy(maps_.files(), std::back_inserter(files));
    writing([&] { write_summary(folder_, summary_of(run, folder_), files); });
    forget_interruptions(folder_);
    if (!quiet_) print_result(run, folder_);
  }

  Trainer& trainer_;
  Experiment& settings_;
  fs::path const& folder_;
  bool quiet_;
  Selection selection_;
  Metrics metrics_;
  Index again_;                      ///< a step that is evaluated though train.evaluate.every does not say so; −1: none
  std::optional<EventFile> events_;  ///< of the first rank, if asked for
  Prober prober_;
  AttentionMapWriter maps_;
  Progress progress_;
  Index saved_;    ///< the step of the checkpoint on disk
  double memory_;  ///< memory.peak, in bytes
  Clock::time_point began_{};
};

/// Throws FolderError if the updates that were made would have had other learning rates in a run that was meant to be as long as now.
void check_schedule(fs::path const& path, Trainer const& trainer, Experiment const& settings, Index steps_before) {
  for (Index step = 0; step < trainer.step(); ++step) {
    if (trainer.learning_rate_at(step, steps_before) == trainer.learning_rate_at(step, settings.train.steps)) continue;
    auto const [before, now] =
        told_apart(trainer.learning_rate_at(step, settings.train.steps), trainer.learning_rate_at(step, steps_before));
    throw FolderError(fmt::format(
        "{}: trained {} of {} steps, and the learning rate of step {} would have been {} instead of {} in a run of {}: the "
        "schedule depends on train.steps (give another name or --output, or --fresh to begin anew; a schedule without an end, such as "
        "constant, can go on)",
        path.string(), trainer.step(), steps_before, step, before, now, settings.train.steps));
  }
}

/// Throws FolderError if a finished run has read something else than would be read now, FileError if its rows are not as they were.
void check_finished(fs::path const& path, Trainer const& trainer) {
  check_written(path, "metrics.jsonl");
  auto const summary = read_json(path / "summary.json");
  auto const difference = changed(read_files_of(summary.value("read", nlohmann::ordered_json())), trainer.files_read());
  if (!difference) return;
  throw FolderError(
      fmt::format("{}: is finished, but a file that it has read has changed since: {} (put the file back, or --fresh begins anew)",
                  path.string(), *difference));
}

/// Holds what the finished part of a run has left against its summary, before that is replaced. (Its configuration is compared by key.)
/// Maps that somebody has deleted are named. Throws FileError for a file that is not as it was.
void check_before_going_on(fs::path const& path) {
  for (auto const& file : files_written(path)) {
    if (file == "config.yaml") continue;
    if (fs::exists(path / file) || file == "metrics.jsonl")
      check_written(path, file);
    else
      fmt::print(stderr, "{}: is missing, though the run had left it\n", (path / file).string());
  }
}

/// Compares the folder's configuration with these settings. Returns its train.steps; nothing if the folder has no configuration. Throws
/// FolderError, naming the keys that differ; only train.steps may have grown.
std::optional<Index> compare(fs::path const& path, Experiment& settings) {
  fs::path const file = path / "config.yaml";
  if (fs::exists(file) && !fs::is_regular_file(file))
    throw FolderError(fmt::format("{}: is not a regular file (--fresh puts the folder aside)", file.string()));
  if (!fs::exists(file)) {
    if (has_checkpoint(path))
      throw FolderError(fmt::format("{}: holds a checkpoint but not its config.yaml (--fresh puts it aside)", path.string()));
    return std::nullopt;
  }
  Yaml const before = load_kept(path).root;
  auto differing = keys_changed(before, settings);
  Yaml const* const steps = before.find("train.steps");
  auto const were = steps == nullptr ? std::nullopt : parsed_number<Index>(steps->text);
  if (were && *were <= settings.train.steps) std::erase(differing, "train.steps");
  if (differing.empty()) return were;
  constexpr std::size_t enough = 16;  // keeps the message short; the two files have the rest
  if (std::size_t const rest = differing.size(); rest > enough) {
    differing.resize(enough);
    differing.back() = fmt::format("{} (and {} more)", differing.back(), rest - enough);
  }
  throw FolderError(fmt::format(
      "{}: holds another configuration; what differs: {} (give another name or --output, or --fresh to put the old folder aside)",
      path.string(), fmt::join(differing, ", ")));
}

/// Begins to write in the folder, where a run with these settings goes on from `step`: writes the resolved configuration and removes what
/// is no longer true: the summary of a run of fewer steps, states of other steps, parts of files that a killed process has left. Throws
/// Error if the disk is full, or the summary stays.
void begin_in(fs::path const& path, Experiment& settings, Index step) {
  fs::path const summary = path / "summary.json";  // of a shorter run: first, since the rows that go on do not match it
  std::error_code failed;
  if (fs::exists(summary, failed) && !is_finished(path, settings) && !fs::remove(summary, failed))
    throw Error(fmt::format("{}: cannot be removed: {}", summary.string(), failed.message()));
  remove_parts(path);
  write_atomically(path / "config.yaml", emit(settings));
  remove_other_states(path, step);
}

/// Lays the rows and the best weights of the continued run into the new one's folder, so that curves join and the best evaluation stays
/// known. Throws FileError if they are damaged, Error if they cannot be written.
void take_rows(ContinuedRun const& from, fs::path const& folder, bool with_best) {
  read_rows(from.folder);  // that they are whole
  write_atomically(folder / "metrics.jsonl", read_file(from.folder / "metrics.jsonl"));
  if (with_best && has_best(from.folder)) save_best(folder, load_best(from.folder));
}

/// Trains in a folder that is held.
Exit train_in(fs::path const& path, Trainer& trainer, LoadedExperiment& experiment, bool quiet) {
  auto const steps_before = compare(path, experiment.settings);
  if (is_finished(path, experiment.settings)) {
    check_finished(path, trainer);
    if (!quiet)
      fmt::print("{}: finished already, {} steps (--fresh begins anew)\n", path.string(),
                 read_json(path / "summary.json").at("steps").get<Index>());
    return Exit::done;
  }
  if (has_checkpoint(path)) {
    if (ranks().first()) check_before_going_on(path);
    trainer.resume(load_checkpoint(path), path);
    if (steps_before) check_schedule(path, trainer, experiment.settings, *steps_before);
  } else if (trainer.continued()) {
    if (ranks().first()) take_rows(*trainer.continued(), path, experiment.settings.train.keeps_best());
    ranks().barrier();
  }
  if (!quiet) {
    if (auto const remark = trainer.remark()) fmt::print(stderr, "{}\n", *remark);
    if (auto const cut = trainer.data().facts().cut_short(trainer.model().context())) fmt::print(stderr, "{}: {}\n", path.string(), *cut);
    fmt::print("{}: {} parameters, {}, about {:.0f} MB of memory{}\n", path.string(), trainer.parameters().elements(),
               trainer.tokens_in_words(), static_cast<double>(memory_use().peak) / 1e6,
               trainer.step() > 0 ? fmt::format(", going on from step {}", trainer.step()) : "");
    std::fflush(stdout);
  }
  note_signals();
  MemoryLimit const limit = within_available_memory();
  Session session(trainer, experiment.settings, path, quiet);
  ranks().barrier();  // all have read what the first one now replaces
  if (ranks().first()) begin_in(path, experiment.settings, trainer.step());
  return session.run();
}

}  // namespace

fs::path folder_of(LoadedExperiment const& experiment) { return experiment.folders.output / experiment.settings.name; }

bool is_finished(fs::path const& folder, Experiment const& settings) {
  if (!has_checkpoint(folder)) return false;
  auto summary = find_json(folder / "summary.json");
  if (!summary || !summary->is_object() || (*summary)["finished"] != true) return false;
  return (*summary)["steps"] == settings.train.steps || (*summary)["stopped_of"] == settings.train.steps;
}

Exit train(LoadedExperiment& experiment, bool quiet, bool fresh) {
  quiet = quiet || !ranks().first();
  Trainer trainer(experiment, quiet);
  auto const path = folder_of(experiment);
  if (ranks().several()) check_same_run(trainer, experiment, path, fresh);
  std::optional<FolderLock> lock;
  if (ranks().first()) {
    if (fresh) put_aside(path);
    lock.emplace(path);
  }
  ranks().barrier();
  auto const exit = train_in(path, trainer, experiment, quiet);
  if (exit == Exit::interrupted && ranks().first()) record_interruption(path, stop_reason());
  return exit;
}

Exit train(LoadedExperiment& experiment, bool quiet, FolderLock const&) {
  Trainer trainer(experiment, quiet);
  return train_in(folder_of(experiment), trainer, experiment, quiet);
}

}  // namespace heed
