#include <algorithm>
#include <iostream>
#include <limits>
#include <map>
#include <span>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/graph.hpp"
#include "experiments/commands/commands.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/config/table.hpp"
#include "experiments/folder/csv.hpp"
#include "experiments/folder/folder.hpp"
#include "experiments/metric/lengths.hpp"
#include "experiments/metric/statistics.hpp"
#include "experiments/program/command.hpp"
#include "experiments/program/progress.hpp"
#include "experiments/report/confusion.hpp"
#include "experiments/report/evaluation.hpp"
#include "experiments/report/evaluation_folder.hpp"
#include "nn/files/atomic_file.hpp"

namespace heed {

namespace {

/// The decoded texts, in the order of the data; none if no metric decodes.
class DecodedTexts : public Metric {
 public:
  void add(EvaluatedBatch const& batch) override {
    if (!batch.has_decoded()) return;
    auto const& tokenizer = batch.data().facts().tokenizer;
    for (std::size_t row = 0; row < batch.decoded().size(); ++row)
      lines_[batch.rows().numbers[row]] = tokenizer ? tokenizer->decode(batch.decoded()[row].tokens) : "";
  }
  void write(Row&, std::string const&) const override {}

  bool empty() const { return lines_.empty(); }
  std::string text() const {
    std::string all;
    for (auto const& [number, line] : lines_) all += line + "\n";
    return all;
  }

 private:
  std::map<Index, std::string> lines_;
};

/// One metric of each kind, over rows that are added fold by fold: over all of them, and without each fold.
class Gathered {
 public:
  Gathered(std::vector<MetricKind const*> const& kinds, Dataset const& data, std::size_t folds) {
    for (std::size_t i = 0; i <= folds; ++i) all_.push_back(mapped(kinds, [&](MetricKind const* kind) { return kind->make(data); }));
  }
  /// Metrics to which rows of this fold are to be added.
  void add_to(EvaluatedBatch::Metrics& metrics, std::size_t fold) const {
    for (std::size_t i = 0; i < all_.size(); ++i)
      if (i != fold + 1)
        for (auto const& metric : all_[i]) metrics.push_back(metric.get());
  }
  Row values(Index step) const { return row(all_.front(), step); }
  /// The standard error of each value by the jackknife, which applies to any metric, including BLEU.
  Row errors(Index step) const {
    Row result = values(step);
    auto const without = mapped(std::span(all_).subspan(1), [&](Metrics const& metrics) { return row(metrics, step); });
    for (auto& [name, value] : result.values) {
      std::vector<double> left;
      for (Row const& each : without) {
        double const* const found = each.find(name);
        left.push_back(found == nullptr ? std::numeric_limits<double>::quiet_NaN() : *found);
      }
      value = jackknife_error(left).value_or(std::numeric_limits<double>::quiet_NaN());
    }
    return result;
  }

 private:
  using Metrics = std::vector<std::unique_ptr<Metric>>;
  static Row row(Metrics const& metrics, Index step) {
    constexpr std::string_view prefix = "m.";
    Row written{step, {}};
    for (auto const& metric : metrics) metric->write(written, "m");
    for (auto& [name, value] : written.values) name.erase(0, prefix.size());
    return written;
  }

  std::vector<Metrics> all_;  ///< the first over all rows, then without fold 0, 1, …
};

/// A trained model and the data that it was trained on.
class Evaluator {
 public:
  explicit Evaluator(EvaluateOptions const& options)
      : options_(options),
        run_(open_run(options, options.dtype)),
        data_(options.table.empty() ? data_of(run_, options.folders, options.split, options.quiet)
                                    : data_of_file(run_, options.table, true)),
        kinds_(kinds()) {
    if (auto const& classes = data_->facts().classes; !classes.empty() && predicts(*run_.model, "label")) confusion_.emplace(classes);
  }

  Evaluation evaluate() const {
    auto const& train = run_.settings.train;
    auto const usual = train.evaluate.batch.value_or(train.batch);
    auto const rows = by_length(*data_, run_.model->context(), usual, options_.batch.value_or(usual));
    if (rows.rows == 0) throw FileError(fmt::format("{}: its data hold nothing out", run_.path.string()));
    std::size_t folds = 0;
    for (auto const& group : rows.groups) folds = std::max(folds, group.folds.size());
    Gathered const whole(kinds_, *data_, folds);
    Progress progress(run_.settings.name, rows.rows, 0, options_.quiet, "rows");
    Evaluation result{.run = run_.path.string(),
                      .split = options_.table.empty() ? options_.split : fmt::format("table-{}", options_.table.stem().string()),
                      .weights = run_.weights,
                      .step = run_.step,
                      .search = {},
                      .length_of = rows.length_of,
                      .whole = {{rows.groups.front().shortest, rows.groups.back().longest, rows.rows}, {}, {}},
                      .by_length = {}};
    Index done = 0;
    for (auto const& group : rows.groups) {
      Gathered const of_group(kinds_, *data_, group.folds.size());
      for (std::size_t fold = 0; fold < group.folds.size(); ++fold) {
        EvaluatedBatch::Metrics metrics;
        whole.add_to(metrics, fold);
        if (rows.groups.size() > 1) of_group.add_to(metrics, fold);
        if (confusion_) metrics.push_back(&*confusion_);
        metrics.push_back(&texts_);  // last: it asks whether another wanted targets decoded
        for (HeldOut const& batch : group.folds[fold]) {
          see(batch, metrics);
          progress.update(done += batch.batch.rows(), "");
        }
      }
      result.whole.mean += group.mean * static_cast<double>(group.rows) / static_cast<double>(rows.rows);
      if (rows.groups.size() > 1) result.by_length.push_back({group, of_group.values(run_.step), of_group.errors(run_.step)});
    }
    progress.finish();
    result.whole.values = whole.values(run_.step);
    result.whole.errors = whole.errors(run_.step);
    if (!texts_.empty()) result.search = options_.search;
    if (result.whole.values.find("loss") != nullptr) result.references = data_->reference_losses(rows.rows, run_.model->context());
    return result;
  }

  /// How often each class was taken for which; "": the data have no classes.
  std::string confusion() const { return confusion_ ? "\n" + table(confusion_->rows()) : ""; }

  /// A note about the results; "": none.
  std::string remark(Evaluation const& evaluation) const {
    if (run_.weights != "best" || evaluation.split != "validation") return "";
    return fmt::format("the weights were selected by {} on these data: the values are optimistic\n", run_.settings.train.select.metric);
  }

  /// Leaves the results on disk. What was written, as text.
  std::string save(Evaluation const& evaluation) const {
    if (!options_.save.empty()) {
      write_atomically(options_.save, options_.save.extension() == ".csv" ? csv_of(evaluation) : json_of(evaluation));
      return options_.save.string();
    }
    auto const folder = run_.folder() / folder_name(evaluation);
    auto files = drawn([&] { return draw_by_length(evaluation); });
    if (confusion_) {
      files.merge(drawn([&] { return drawn_files(confusion_->figure()); }));
      for (auto const& row : confusion_->rows()) files["confusion.csv"] += csv_line(row);
    }
    files["results.csv"] = csv_of(evaluation);
    files["results.json"] = json_of(evaluation);
    if (!texts_.empty()) files["decoded.txt"] = texts_.text();
    try {
      write_folder(folder, files);
    } catch (Error const& error) {
      throw Error(fmt::format("{} (--save FILE.csv writes the results elsewhere)", error.what()));
    }
    return folder.string();
  }

 private:
  std::optional<std::string> unavailable(MetricKind const& kind) const {
    return kind.unavailable ? kind.unavailable(*data_, *run_.model) : std::nullopt;
  }

  std::vector<MetricKind const*> kinds() const {
    std::vector<MetricKind const*> all;
    for (MetricKind const& kind : Registry<MetricKind>::all()) {
      bool const asked = options_.metrics && std::ranges::find(*options_.metrics, kind.info.name) != options_.metrics->end();
      if (options_.metrics && !asked) continue;
      auto const why = unavailable(kind);
      if (why && asked) throw ConfigError("--metrics", fmt::format("there is no {} of this run: {}", kind.info.name, *why));
      if (!why) all.push_back(&kind);
    }
    return all;
  }

  /// The name of the folder: every option that changes the results, unless it has its default.
  std::string folder_name(Evaluation const& evaluation) const {
    std::string name = "evaluation-" + file_label(evaluation.split);
    auto const& train = run_.settings.train;
    if ((train.ema || train.keeps_best()) && run_.weights == "last") name += "-last";
    if (train.keeps_best() && run_.weights == "averaged") name += "-average";
    if (options_.dtype) name += fmt::format("-{}", to_string(*options_.dtype));
    if (auto const& search = evaluation.search; search && search->width > 1) {
      name += fmt::format("-beam{}", search->width);
      if (search->length_penalty != BeamSettings().length_penalty) name += fmt::format("-penalty{}", search->length_penalty);
    }
    auto const usual = std::ranges::count_if(Registry<MetricKind>::all(), [&](MetricKind const& kind) { return !unavailable(kind); });
    if (std::ssize(kinds_) == usual) return name;
    auto const only = mapped(kinds_, [](MetricKind const* kind) { return file_label(kind->info.name); });
    return name + "-only-" + cut_label(fmt::format("{}", fmt::join(only, "+")));
  }

  /// The files of a figure; none, with a message, if it cannot be drawn.
  template <class Draw>
  static std::map<std::string, std::string> drawn(Draw const& draw) {
    try {
      if (auto files = draw()) return *files;
      fmt::print(stderr, "heed: gnuplot is not installed, the evaluation has no figure: apt-get install gnuplot-nox\n");
    } catch (Error const& error) {
      fmt::print(stderr, "heed: the evaluation has no figure: {}\n", error.what());
    }
    return {};
  }

  void see(HeldOut const& rows, EvaluatedBatch::Metrics const& metrics) const try {
    Pass pass;
    pass.decoding.choosing = Stream(static_cast<std::uint64_t>(run_.settings.seed), "evaluation");
    pass.decoding.sequences.assign(rows.numbers.begin(), rows.numbers.end());
    measure(*data_, *run_.model, rows, pass, options_.search, metrics);
  } catch (NonFinite const& error) {
    throw FileError(fmt::format("{}: {}: the weights are damaged, or the training went wrong", run_.path.string(), error.what()));
  }

  EvaluateOptions const& options_;
  TrainedModel run_;
  std::unique_ptr<Dataset> data_;
  std::vector<MetricKind const*> kinds_;
  mutable DecodedTexts texts_;
  mutable std::optional<Confusion> confusion_;
};

void check_options(EvaluateOptions const& options) {
  auto const names = Registry<MetricKind>::names();
  if (options.metrics && options.metrics->empty())
    throw ConfigError("--metrics", fmt::format("names no metric (there are {}; default: all that apply)", fmt::join(names, ", ")));
  for (auto const& name : options.metrics.value_or(std::vector<std::string>())) expect_known("--metrics", name, names, "metric");
  if (!options.save.empty()) expect_ending("--save", options.save, {".csv", ".json"});
  bool const of_text = !options.text.empty() || !options.ids.empty();
  if (options.stride && !of_text) throw ConfigError("--stride", "needs --text or --ids");
  if (!options.text.empty() && !options.ids.empty()) throw ConfigError("--ids", "cannot be combined with --text");
  if (!options.table.empty() && of_text) throw ConfigError("--table", "cannot be combined with --text or --ids");
  if (!options.table.empty() && options.split != "validation")
    throw ConfigError("--split", "is a part of the run's own data: --table has none");
}

void declare_evaluate(CLI::App& app, EvaluateOptions& options) {
  add_argument(app, "RUN", "a run's folder or name, or its checkpoint", options.run);
  add_word(app, "--split", options.split, {"validation", "test"}, "the part of the data (default: validation)");
  add_beam(app, options.search);
  add_text(app, "--metrics", "NAME,…", "metrics to compute, separated by commas (default: all that apply; see heed list metrics)",
           [&](std::string const& text) {
             options.metrics.emplace();
             std::istringstream names(text);
             for (std::string name; std::getline(names, name, ',');) options.metrics->push_back(name);
           });
  add_weights(app, options.weights);
  add_number<Index>(app, "--batch", options.batch, 1, 1e6, "sequences per batch (default: as in the run's evaluations)");
  add_text(app, "--save", "FILE", "a .csv or .json file for the results (default: evaluation-SPLIT in the run's folder)", options.save);
  add_text(app, "--table", "FILE", "evaluate labelled examples of another file, in the form of the run's data", options.table);
  add_text(app, "--text", "FILE", "compute the loss of this text instead of the held-out data", options.text);
  add_text(app, "--ids", "FILE", "likewise, for a text as token ids (little-endian int32)", options.ids);
  add_number<Index>(app, "--stride", options.stride, 1, 1 << 20,
                    "with --text or --ids: stride between windows in tokens; each window predicts its last tokens (default: the context)");
  add_text(app, "--dtype", "TYPE", "float32 or float64 (default: as in training)", [&](std::string const& text) {
    if (text != "float32" && text != "float64") throw ConfigError("--dtype", fmt::format("wants float32 or float64, but found '{}'", text));
    options.dtype = text == "float64" ? DType::float64 : DType::float32;
  });
}

Declared<Command> const evaluate_command{
    {.order = 6,
     .name = "evaluate",
     .usage = "RUN",
     .help = "compute metrics of a trained model on its held-out data, over all sequences and by length",
     .footer = "Writes evaluation-SPLIT/ in the run's folder: results.csv, results.json, metrics_by_length.svg and .pdf, for decoded "
               "targets\ndecoded.txt, for classes confusion.csv, .svg and .pdf. Other options have folders of their own "
               "(evaluation-test-beam5); each is replaced as a "
               "whole.\n\nexamples:\n  heed evaluate runs/grammar\n  heed evaluate runs/multi30k --split test --beam 5\n  heed evaluate "
               "gpt2 --text wiki.txt --stride 512            a Hugging Face folder",
     .add = with_options<EvaluateOptions>(declare_evaluate, [](EvaluateOptions const& options) { return evaluate(options, std::cout); })}};

}  // namespace

Exit evaluate(EvaluateOptions const& options, std::ostream& out) {
  check_options(options);
  if (!options.text.empty() || !options.ids.empty()) return evaluate_text(options, out);
  NoGrad const no_grad;
  Evaluator const evaluator(options);
  auto const found = evaluator.evaluate();
  if (!options.quiet)
    out << table_of(found) << evaluator.confusion() << evaluator.remark(found)
        << std::flush;  // first: it is there even if nothing can be saved
  auto const saved = evaluator.save(found);
  if (!options.quiet) out << fmt::format("saved in {}\n", saved);
  return Exit::done;
}

}  // namespace heed
