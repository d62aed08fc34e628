#include <iostream>

#include <fmt/format.h>

#include "autograd/graph.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/folder/csv.hpp"
#include "experiments/metric/lengths.hpp"
#include "experiments/program/command.hpp"
#include "experiments/program/progress.hpp"
#include "experiments/train/predictions.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/json.hpp"

namespace heed {

namespace {

struct PredictOptions : ChosenRun {
  fs::path file, save;
  Index batch = 32;
  bool quiet = false;
};

void declare_predict(CLI::App& app, PredictOptions& options) {
  add_argument(app, "RUN", "a run's folder or name, or its checkpoint", options.run);
  add_argument(app, "FILE", "examples in the form of the run's data, with or without labels, which are not read", options.file);
  add_text(app, "--save", "FILE", "a .jsonl or .csv file for the predictions (default: JSON lines on standard output)", options.save);
  add_weights(app, options.weights);
  add_number<Index>(app, "--batch", options.batch, 1, 1e6, "sequences per batch (default: 32)");
}

/// What a model answers to every example, in their order.
std::vector<nlohmann::ordered_json> answers(PredictOptions const& options) {
  auto const run = open_run(options);
  auto const data = data_of_file(run, options.file, false);
  NoGrad const no_grad;
  auto const rows = by_length(*data, run.model->context(), options.batch, options.batch);
  Progress progress("predicting", rows.rows, 0, options.quiet, "rows");
  std::vector<nlohmann::ordered_json> lines(static_cast<std::size_t>(rows.rows));
  Index done = 0;
  for (auto const& group : rows.groups)
    for (auto const& fold : group.folds)
      for (HeldOut const& batch : fold) {
        for (auto& prediction : predictions_for(*data, *run.model, batch, false)) at(lines, prediction.row) = std::move(prediction.line);
        progress.update(done += batch.batch.rows(), "");
      }
  progress.finish();
  return lines;
}

/// A table: row and place, what is predicted, and a column per class.
std::string csv_of(std::vector<nlohmann::ordered_json> const& lines) {
  std::vector<std::string> head{"row", "place", "predicted", lines.front().contains("probability") ? "probability" : "above_no_answer"};
  auto const classes = lines.front().value("probabilities", nlohmann::ordered_json::object());
  auto names = head;
  for (auto const& [name, share] : classes.items()) names.push_back(name);
  std::string text = csv_line(names);
  for (auto const& line : lines) {
    std::vector<std::string> fields;
    for (auto const& key : head) fields.push_back(line[key].is_string() ? line[key].get<std::string>() : line[key].dump());
    for (auto const& [name, share] : classes.items()) fields.push_back(line["probabilities"][name].dump());
    text += csv_line(fields);
  }
  return text;
}

Exit predict(PredictOptions const& options) {
  bool const csv = options.save.extension() == ".csv";
  if (!options.save.empty()) expect_ending("--save", options.save, {".jsonl", ".csv"});
  auto const lines = answers(options);
  std::string text;
  if (csv) text = csv_of(lines);
  for (std::size_t i = 0; !csv && i < lines.size(); ++i) text += json_text(lines[i]) + "\n";
  if (options.save.empty())
    std::cout << text << std::flush;
  else
    write_atomically(options.save, text);
  if (!options.save.empty() && !options.quiet) std::cout << fmt::format("{}: {} predictions\n", options.save.string(), lines.size());
  return Exit::done;
}

Declared<Command> const predict_command{
    {.order = 7,
     .name = "predict",
     .usage = "RUN FILE",
     .help = "answer examples without labels: classes, choices or spans, with probabilities",
     .footer = "FILE is read by the templates of the run's data (its ending says the format: .csv, .tsv, .jsonl, .json of SQuAD).\n\n"
               "examples:\n  heed predict runs/reviews new.csv --save answers.csv\n  heed predict runs/reviews new.jsonl | head",
     .add = with_options<PredictOptions>(declare_predict, predict)}};

}  // namespace

}  // namespace heed
