#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "nn/settings.hpp"

namespace heed {

/// What a schedule must know of the training it belongs to.
struct Training {
  std::int64_t steps;      ///< how many updates there will be: they are numbered 0 … steps − 1
  double lr;               ///< the optimizer's learning rate: the height that warm-up climbs to
  std::int64_t width = 0;  ///< the model's, for noam
};

/// How the learning rate goes: the settings of one kind, and the rate as a pure function of the step (from 0), so that nothing is to be
/// saved.
struct ScheduleSettings : Settings {
  virtual double rate(std::int64_t step, Training const& training) const = 0;
  /// The step at whose rate the warm-up has climbed to its height; 0 without one.
  virtual std::int64_t height() const { return 0; }
};

using ScheduleKind = KindOf<ScheduleSettings>;
/// `schedule: {kind: cosine, …}`, all kinds there are; constant without warm-up is chosen.
Choice schedule_choice();
/// The learning rate of update `step`, counted from 0. Throws Error if no schedule is chosen.
double learning_rate(Choice const& choice, std::int64_t step, Training const& training);
/// Says so if the training ends before its warm-up does; nothing if it does not. Throws Error if no schedule is chosen.
std::optional<std::string> unfinished_warmup(Choice const& choice, Training const& training);

}  // namespace heed
