#include "experiments/metric/probe/settings.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "experiments/metric/probe/probe.hpp"

namespace heed {

namespace {

constexpr double most_steps = 1e12;

std::vector<std::string> probe_names(std::string const& group) {
  std::vector<std::string> result;
  for (Probe const& probe : Registry<Probe>::all())
    if (probe.group == group) result.push_back(probe.name);
  return result;
}

std::optional<std::string> twice(std::string const& group, std::vector<std::string> const& names) {
  for (auto const& name : names)
    if (std::ranges::count(names, name) > 1) return fmt::format("{}: '{}' is listed twice", group, name);
  return std::nullopt;
}

}  // namespace

std::vector<Field> MapSettings::fields() {
  return {
      {.name = "examples",
       .target = &examples,
       .help = "number of validation sequences whose attention maps are saved, in attention/step-….npz",
       .least = 0,
       .greatest = 4096},
      {.name = "every",
       .target = &every,
       .help = "steps between maps; the final weights are always included",
       .least = 1,
       .greatest = most_steps},
  };
}

std::vector<Field> ProbeSettings::fields() {
  return {
      {.name = "every",
       .target = &every,
       .help = "steps between probes; the final weights are always probed",
       .least = 1,
       .greatest = most_steps},
      {.name = "batch",
       .target = &batch,
       .help =
           "data of the probes. validation (default; training if there is none) or training: the first batch, the same throughout a run, "
           "in a separate pass without dropout and with expected hard reads; step: each step's training batch in its own pass, at almost "
           "no cost. Probes that need a pass of their own, and all probes of the final weights, then use the first training batch",
       .words = {"validation", "training", "step"}},
      {.name = "rows", .target = &rows, .help = "sequences of that batch; default: train.batch", .least = 1, .greatest = 1 << 20},
      {.name = "attention", .target = &attention, .help = "statistics of attention by layer and head", .words = probe_names("attention")},
      {.name = "gradients",
       .target = &gradients,
       .help = "gradient statistics; norms are of the training step's gradient, as grad_norm, the others of the probes' batch",
       .words = probe_names("gradients")},
      {.name = "activations", .target = &activations, .help = "statistics of activations by layer", .words = probe_names("activations")},
      {.name = "curvature", .target = &curvature, .help = "curvature of the loss", .words = probe_names("curvature")},
      {.name = "iterations",
       .target = &iterations,
       .help = "sharpness: largest number of Hessian-vector products",
       .least = 1,
       .greatest = 1e6},
      {.name = "tolerance",
       .target = &tolerance,
       .help = "sharpness: stop when ‖Hv − λv‖ ≤ tolerance · |λ|",
       .least = 0,
       .greatest = 1,
       .open = true},
      {.name = "maps", .target = &maps, .help = "attention maps on disk"},
  };
}

std::optional<std::string> ProbeSettings::contradiction() {
  if (auto const again = twice("attention", attention)) return again;
  if (auto const again = twice("gradients", gradients)) return again;
  if (auto const again = twice("activations", activations)) return again;
  return twice("curvature", curvature);
}

std::vector<std::string> const& asked_for(ProbeSettings const& settings, std::string_view group) {
  return group == "attention"     ? settings.attention
         : group == "gradients"   ? settings.gradients
         : group == "activations" ? settings.activations
                                  : settings.curvature;
}

}  // namespace heed
