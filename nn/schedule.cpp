#include "nn/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "nn/files/number.hpp"

namespace heed {

Choice schedule_choice() { return choice_of<ScheduleKind>("constant"); }

namespace {

ScheduleSettings const& chosen(Choice const& choice) { return chosen_settings<ScheduleSettings>(choice, "schedule"); }

/// lr·(t + 1)/(warmup + 1) for the steps t < warmup, then lr.
struct ConstantSchedule : ScheduleSettings {
  Index warmup = 0;

  std::vector<Field> fields() override { return {field(&warmup, "warmup", "steps of linear warm-up to lr").at_least(0)}; }
  Index height() const override { return warmup; }
  double rate(Index step, Training const& training) const override {
    if (step >= warmup) return training.lr;
    return training.lr * static_cast<double>(step + 1) / static_cast<double>(warmup + 1);
  }
};

/// Decay from lr at step `warmup` to min_lr at step `steps`, and min_lr afterwards, in as many equal stretches as there are updates, each
/// with the rate at its beginning, so that the last update, at step steps − 1, is still above min_lr (as with PyTorch's schedulers).
struct Decay : ConstantSchedule {
  double min_lr = 0;
  std::string form;

  explicit Decay(std::string of_form) : form(std::move(of_form)) {}
  std::vector<Field> fields() override {
    return extended(
        ConstantSchedule::fields(),
        {field(&min_lr, "min_lr", "learning rate at step train.steps, one step after the last update; the last update is still above it")
             .at_least(0)});
  }
  double rate(Index step, Training const& training) const override {
    if (step < warmup) return ConstantSchedule::rate(step, training);
    return falling(step, static_cast<double>(warmup), training.lr, training);
  }
  /// The rate at a step from `begin` on, where it is `peak`. Of the progress r what is left of peak − min_lr is 1 − r (linear), half a
  /// cosine (Loshchilov & Hutter 2017), or 1 − √r (Hägele et al. 2024).
  double falling(Index step, double begin, double peak, Training const& training) const {
    if (step >= training.steps) return min_lr;
    double const progress = (static_cast<double>(step) - begin) / (static_cast<double>(training.steps) - begin);
    double const left = form == "sqrt"     ? 1 - std::sqrt(progress)
                        : form == "linear" ? 1 - progress
                                           : 0.5 * (1 + std::cos(std::numbers::pi * progress));
    return min_lr + left * (peak - min_lr);
  }
};

/// Warm-up, then lr, then over the last share of the updates down to min_lr (Hu et al. 2024, "MiniCPM").
struct WarmupStableDecay : Decay {
  double decay = 0.2;

  WarmupStableDecay() : Decay("linear") {}
  std::vector<Field> fields() override {
    return extended(
        Decay::fields(),
        {field(&decay, "decay", "share of the updates in which the rate falls, at the end").in(0, 1),
         field(&form, "form", "how it falls: linearly, as half a cosine, or as 1 - sqrt(progress)").one_of({"linear", "cosine", "sqrt"})});
  }
  double rate(Index step, Training const& training) const override {
    double const begin = std::max((1 - decay) * static_cast<double>(training.steps), static_cast<double>(warmup));
    if (step < warmup || static_cast<double>(step) < begin) return ConstantSchedule::rate(step, training);
    return falling(step, begin, training.lr, training);
  }
};

/// lr · √((warmup + 1)/(t + 1)) from the warm-up on: it needs no number of steps (Zhai et al. 2022, without their cooldown).
struct InverseSquareRoot : ConstantSchedule {
  double rate(Index step, Training const& training) const override {
    double const level = ConstantSchedule::rate(step, training);
    return step < warmup ? level : level * std::sqrt(static_cast<double>(warmup + 1) / static_cast<double>(step + 1));
  }
};

/// For a run that continues another: from the rate of that run's last update, constant or down to min_lr by one of wsd's forms.
struct Extension : Decay {
  Extension() : Decay("constant") {}
  std::vector<Field> fields() override {
    return {field(&form, "form", "how the rate goes on: constant, or down to min_lr as wsd's forms")
                .one_of({"constant", "linear", "cosine", "sqrt"}),
            field(&min_lr, "min_lr", "learning rate at step train.steps").at_least(0)};
  }
  std::optional<std::string> contradiction() override {
    if (form == "constant" && min_lr > 0) return "min_lr: has no effect with form: constant";
    return std::nullopt;
  }
  double rate(Index step, Training const& training) const override {
    if (!training.last) throw Error("train.schedule.kind: extend goes on from another run's rate, and there is no train.continue");
    if (form == "constant" || step < training.begin) return *training.last;
    return falling(step, static_cast<double>(training.begin), *training.last, training);
  }
};

/// factor · width^−½ · min(s^−½, s · warmup^−3/2) at s = t + 1 (Vaswani et al. 2017, section 5.3).
struct Noam : ScheduleSettings {
  Index warmup = 4000;
  double factor = 1;

  std::vector<Field> fields() override {
    return {field(&warmup, "warmup", "step of the highest learning rate").at_least(1),
            field(&factor, "factor", "factor on width^-0.5 * min(s^-0.5, s * warmup^-1.5); the optimizer's lr is ignored").above(0)};
  }
  Index height() const override { return warmup - 1; }
  double rate(Index step, Training const& training) const override {
    if (training.width < 1) throw Error("schedule: noam wants a model that has a width");
    auto const s = static_cast<double>(step + 1);
    return factor / std::sqrt(static_cast<double>(training.width)) *
           std::min(1 / std::sqrt(s), s * std::pow(static_cast<double>(warmup), -1.5));
  }
};

Declared<ScheduleKind> const constant{
    {"constant", "constant at lr after the warm-up", [] { return std::make_shared<ConstantSchedule>(); }}};
Declared<ScheduleKind> const linear{{"linear", "linear from lr to min_lr after the warm-up, reached one step after the last",
                                     [] { return std::make_shared<Decay>("linear"); }}};
Declared<ScheduleKind> const cosine{{"cosine", "half a cosine from lr to min_lr after the warm-up, reached one step after the last",
                                     [] { return std::make_shared<Decay>("cosine"); }}};
Declared<ScheduleKind> const wsd{{"wsd", "warm-up, then constant at lr, then a decay to min_lr over the last updates (Hu et al. 2024)",
                                  [] { return std::make_shared<WarmupStableDecay>(); }}};
Declared<ScheduleKind> const inverse_sqrt{
    {"inverse_sqrt", "warm-up to lr, then 1/√step, whatever the number of steps", [] { return std::make_shared<InverseSquareRoot>(); }}};
Declared<ScheduleKind> const extend{{"extend", "from the last rate of the run that train.continue names, constant or with a new decay",
                                     [] { return std::make_shared<Extension>(); }}};
Declared<ScheduleKind> const noam{{"noam", "linear warm-up, then 1/√step (Vaswani et al. 2017)", [] { return std::make_shared<Noam>(); }}};

}  // namespace

double learning_rate(Choice const& choice, Index step, Training const& training) { return chosen(choice).rate(step, training); }

std::optional<std::string> unfinished_warmup(Choice const& choice, Training const& training) {
  ScheduleSettings const& schedule = chosen(choice);
  Index const height = schedule.height();
  if (training.steps < 1 || height < training.steps) return std::nullopt;
  Training longer = training;
  longer.steps = height + 1;
  auto const [last, highest] = told_apart(schedule.rate(training.steps - 1, training), schedule.rate(height, longer));
  return fmt::format("the training ends before its warm-up: after {} steps, at a rate of {}; step {} would have {}", training.steps, last,
                     height, highest);
}

}  // namespace heed
