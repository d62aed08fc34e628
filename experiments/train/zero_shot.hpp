#pragma once

#include <memory>
#include <string>
#include <vector>

#include "experiments/data/dataset.hpp"
#include "experiments/metric/row.hpp"
#include "experiments/train/experiment.hpp"
#include "nn/model.hpp"

namespace heed {

/// Zero-shot accuracy of a language model on multiple-choice tasks during training (Radford et al. 2018, section 5 and figure 2, right):
/// `train.evaluate.zero_shot: [FILE, …]`. The chosen option is the one whose tokens have the highest mean log-probability after the text. A
/// file holds `data:`, a description of examples with options; its name without the extension names the metric.
class ZeroShot {
 public:
  /// Throws ConfigError at the location of a file that does not describe examples with options, and for a model that does not continue
  /// text; FileError for invalid data.
  ZeroShot(LoadedExperiment const& experiment, DataContext const& context, Dataset const& data, Model const& model);

  /// Adds the accuracy on each file's held-out examples, with the current weights, as PREFIX.zero_shot.NAME.
  void measure(Row& row, std::string const& prefix) const;
  /// The files read, "zero_shot.NAME.…".
  ReadFiles files() const;

 private:
  struct ZeroShotTask {
    std::string name;
    std::filesystem::path file;  ///< that describes it
    std::unique_ptr<Dataset> data;
  };
  double accuracy(Dataset const& data) const;

  Model const& model_;
  Index rows_;
  std::vector<ZeroShotTask> tasks_;
};

}  // namespace heed
