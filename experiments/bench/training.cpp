#include <string>
#include <vector>

#include "experiments/bench/measure.hpp"
#include "experiments/train/train.hpp"

namespace heed {

namespace {

void bench_training(BenchOptions const& options, std::ostream& out) {
  if (options.names.empty()) {
    if (options.what.empty()) return;  // of all topics, the one that needs a file
    throw ConfigError("bench training", "which one? A YAML file is missing: heed bench training CONFIG [key.path=value …]");
  }
  std::vector<std::string> overrides(options.names.begin() + 1, options.names.end());
  if (options.precision == "bfloat16") overrides.emplace_back("train.precision=bfloat16");
  if (options.recompute) overrides.emplace_back("train.recompute=true");
  auto const experiment = load_experiment(options.names.front(), overrides, options.folders);
  reset_resident_peak();
  Trainer trainer(experiment, true);
  auto const step = [&trainer] {
    Row row;
    trainer.train_step(row);
  };
  step();  // which says how many tokens one reads, about: rows of texts differ in length
  write_model_heading("a training step of " + options.names.front(), options, out);
  measure_model({.what = "train",
                 .size = experiment.settings.name,
                 .tokens = static_cast<double>(trainer.tokens_read()),
                 .run = step,
                 .recompute = experiment.settings.train.recompute,
                 .critical_path = trainer.critical_path()},
                options, out);
}

Declared<BenchTopic> const training_benchmark{
    {"training",
     "a training step of any configuration, as in heed run, with its data: columns as for gpt, tokens of "
     "the first step without padding; and the critical path of the loss in operations",
     bench_training}};

}  // namespace

}  // namespace heed
