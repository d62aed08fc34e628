#pragma once

#include <memory>
#include <string>
#include <vector>

#include "experiments/data/dataset.hpp"
#include "experiments/metric/row.hpp"
#include "experiments/run/experiment.hpp"
#include "nn/model.hpp"

namespace heed {

/// What a language model knows of tasks that it was never trained on, along its training (Radford et al. 2018, section 5 and figure 2,
/// right): of multiple choices, `train.evaluate.zero_shot: [FILE, …]`, it takes the option whose tokens it finds most probable on the
/// average behind the text. A file holds `data:`, a description of examples with options; its name without the ending names the metric.
class ZeroShot {
 public:
  /// Throws ConfigError for a file that describes no examples with options, at its place, and for a model that continues no text; FileError
  /// for data that are wrong.
  ZeroShot(LoadedExperiment const& experiment, DataContext const& context, Dataset const& data, Model const& model);

  /// The accuracy of each file's held-out examples, with the weights as they are, as PREFIX.zero_shot.NAME.
  void measure(Row& row, std::string const& prefix) const;
  /// What was read, "zero_shot.NAME.…".
  ReadFiles files() const;

 private:
  struct ZeroShotTask {
    std::string name;
    std::unique_ptr<Dataset> data;
  };
  double accuracy(Dataset const& data) const;

  Model const& model_;
  std::int64_t rows_;
  std::vector<ZeroShotTask> tasks_;
};

}  // namespace heed
