#include "experiments/commands/run.hpp"

#include <fmt/format.h>

#include "autograd/parallel.hpp"
#include "experiments/ablation/ablation.hpp"
#include "experiments/report/report.hpp"
#include "experiments/run/train.hpp"
#include "experiments/study/study.hpp"

namespace heed {

Exit run(RunOptions const& options) {
  Document const document = load(options.config);
  if (is_ablation(document)) return run_ablation(options);
  if (is_study(document)) return run_study(options);
  if (options.threads) set_threads(static_cast<int>(*options.threads));
  LoadedExperiment experiment = load_experiment(options.config, options.overrides, options.places);
  Exit const exit = train(experiment, options.quiet, options.fresh);
  auto const folder = folder_of(experiment);
  if (exit == Exit::done && !has_report(folder)) write_report(folder, options.quiet);
  return exit;
}

Exit check(RunOptions const& options) {
  Document const document = load(options.config);
  if (is_ablation(document)) return check_ablation(options);
  if (is_study(document)) return check_study(options);
  LoadedExperiment experiment = load_experiment(options.config, options.overrides, options.places);
  Trainer const trainer(experiment, true);
  if (options.quiet) return Exit::done;
  if (auto const remark = trainer.remark()) fmt::print(stderr, "{}\n", *remark);
  fmt::print("{}", emit(experiment.settings));
  fmt::print("# {} parameters, vocabulary {}, {}\n", trainer.parameters().elements(), trainer.model().vocabulary(),
             trainer.tokens_in_words());
  return Exit::done;
}

}  // namespace heed
