#pragma once

#include <optional>
#include <string>

#include "nn/settings.hpp"

namespace heed {

/// The properties of training that a schedule depends on.
struct Training {
  Index steps;                      ///< number of updates, numbered 0 … steps − 1
  double lr;                        ///< the optimizer's learning rate: the peak after warm-up
  Index width = 0;                  ///< the model's, for noam
  Index begin = 0;                  ///< of a run that continues another one (train.continue): the updates that this one had made,
  std::optional<double> last = {};  ///< and the rate of the last of them; nothing: it continues none
};

/// A learning-rate schedule: the settings of one kind, and the rate as a pure function of the step (from 0): there is no state to save.
struct ScheduleSettings : Settings {
  virtual double rate(Index step, Training const& training) const = 0;
  /// The step at which warm-up reaches the peak; 0 without warm-up.
  virtual Index height() const { return 0; }
};

using ScheduleKind = KindOf<ScheduleSettings>;
/// `schedule: {kind: cosine, …}`; constant without warm-up is the default.
Choice schedule_choice();
/// The learning rate of update `step`, counted from 0. Throws Error if no schedule is chosen.
double learning_rate(Choice const& choice, Index step, Training const& training);
/// A warning if the training ends during warm-up; else nothing. Throws Error if no schedule is chosen.
std::optional<std::string> unfinished_warmup(Choice const& choice, Training const& training);

}  // namespace heed
