#include "experiments/metric/probe/settings.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "experiments/metric/probe/probe.hpp"

namespace heed {

namespace {

constexpr double max_steps = 1e12;

std::vector<std::string> probe_names(std::string const& group) {
  std::vector<std::string> result;
  for (Probe const& probe : Registry<Probe>::all())
    if (probe.group == group) result.push_back(probe.name);
  return result;
}

}  // namespace

std::vector<Field> MapSettings::fields() {
  return {
      field(&examples, "examples", "number of validation sequences whose attention maps are saved, in attention/step-….npz").in(0, 4096),
      field(&every, "every", "steps between maps; the final weights are always included").in(1, max_steps),
  };
}

std::vector<Field> ProbeSettings::fields() {
  return {
      field(&every, "every", "steps between probes; the final weights are always probed").in(1, max_steps),
      field(&batch, "batch",
            "data of the probes. validation (default; training if there is none) or training: the first batch, the same throughout a run, "
            "in a separate pass without dropout and with expected hard reads; step: each step's training batch in its own pass, at almost "
            "no cost. Probes that need a pass of their own, and all probes of the final weights, then use the first training batch")
          .one_of({"validation", "training", "step"}),
      field(&rows, "rows", "sequences of that batch; default: train.batch").in(1, 1 << 20),
      field(&asked.at("attention"), "attention", "statistics of attention by layer and head").one_of(probe_names("attention")),
      field(&asked.at("gradients"), "gradients",
            "gradient statistics; norms are of the training step's gradient, as grad_norm, the others of the probes' batch")
          .one_of(probe_names("gradients")),
      field(&asked.at("activations"), "activations", "statistics of activations by layer").one_of(probe_names("activations")),
      field(&asked.at("curvature"), "curvature", "curvature of the loss").one_of(probe_names("curvature")),
      field(&iterations, "iterations", "sharpness: largest number of Hessian-vector products").in(1, 1e6),
      field(&tolerance, "tolerance", "sharpness: stop when ‖Hv − λv‖ ≤ tolerance · |λ|").between(0, 1),
      field(&maps, "maps", "attention maps on disk"),
  };
}

std::optional<std::string> ProbeSettings::contradiction() {
  for (auto const& field : fields())
    if (auto* const* const names = std::get_if<std::vector<std::string>*>(&field.target))
      for (auto const& name : **names)
        if (std::ranges::count(**names, name) > 1) return fmt::format("{}: '{}' is listed twice", field.name, name);
  return std::nullopt;
}

}  // namespace heed
