#include "experiments/metric/probe/settings.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "experiments/metric/probe/probe.hpp"

namespace heed {

namespace {

constexpr double many = 1e12;

std::vector<std::string> names(std::string const& group) {
  std::vector<std::string> result;
  for (Probe const& probe : Registry<Probe>::all())
    if (probe.group == group) result.push_back(probe.name);
  return result;
}

std::optional<std::string> twice(std::string const& group, std::vector<std::string> const& asked) {
  for (auto const& name : asked)
    if (std::ranges::count(asked, name) > 1) return fmt::format("{}: '{}' stands there twice", group, name);
  return std::nullopt;
}

}  // namespace

std::vector<Field> MapSettings::fields() {
  return {
      {.name = "examples",
       .target = &examples,
       .help = "attention maps of so many first validation rows, in attention/step-….npz",
       .least = 0,
       .greatest = 4096},
      {.name = "every", .target = &every, .help = "steps between maps; the last weights' are always kept", .least = 1, .greatest = many},
  };
}

std::vector<Field> ProbeSettings::fields() {
  return {
      {.name = "every", .target = &every, .help = "steps between; the last weights are always probed", .least = 1, .greatest = many},
      {.name = "batch",
       .target = &batch,
       .help =
           "what probes look at: all through a run the first batch of validation (without such data, of training) or of training, "
           "without dropout, hard reads as their expectation; or, for next to nothing, what each step trains on, in its own pass. Those "
           "that need more than that pass then look at the first batch of training, as all do for the last weights",
       .words = {"validation", "training", "step"}},
      {.name = "rows", .target = &rows, .help = "of that batch; default: train.batch", .least = 1, .greatest = 1 << 20},
      {.name = "attention", .target = &attention, .help = "by layer and head", .words = names("attention")},
      {.name = "gradients",
       .target = &gradients,
       .help = "norms: of the step's own gradient, as grad_norm; the others: of the probes' batch",
       .words = names("gradients")},
      {.name = "activations", .target = &activations, .help = "by layer", .words = names("activations")},
      {.name = "curvature", .target = &curvature, .help = "of the loss", .words = names("curvature")},
      {.name = "iterations", .target = &iterations, .help = "of sharpness: Hessian-vector products at most", .least = 1, .greatest = 1e6},
      {.name = "tolerance",
       .target = &tolerance,
       .help = "of sharpness: done when ‖Hv − λv‖ is at most this share of |λ|",
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
