#include "nn/parametrization.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "nn/optimizer.hpp"

namespace heed {

std::vector<Field> ParametrizationSettings::fields() {
  return {
      field(&kind, "kind", "standard, or mup: the best learning rate stays the same as the width grows (Yang et al. 2022); adam and adamw")
          .one_of({"standard", "mup"}),
      field(&base, "base", "mup: the width at which it equals standard").in(1, 65536)};
}

std::optional<std::string> ParametrizationSettings::contradiction() {
  if (kind == "mup" && !base) return "base: mup wants the width at which it equals standard";
  if (kind != "mup" && base) return "base: only mup has one";
  return std::nullopt;
}

bool ParametrizationSettings::from_word(std::string_view word) {
  *this = {};
  return word == kind;
}

std::optional<std::string> ParametrizationSettings::unavailable(AttentionSettings const& attention) const {
  if (!base) return std::nullopt;
  std::string const rule = "mup has a rule for softmax of scaled dot products only, ";
  if (attention.is_linear()) return "linear: " + rule + "not for linear attention";
  if (attention.score != "scaled_dot") return fmt::format("score: {}not for '{}'", rule, attention.score);
  if (attention.scale != "rsqrt") return fmt::format("scale: {}with a scale of its own instead of '{}'", rule, attention.scale);
  if (attention.align == "local_p") return "align: " + rule + "not for the positions that local_p predicts";
  if (attention.align == "asentmax") return "align: " + rule + "not for the factors that asentmax reads off a query";
  if (attention.differential) return "differential: " + rule + "not for the exponentials of differential attention";
  return std::nullopt;
}

void parametrize(Parameters& parameters, Parameters const& base) {
  for (auto const& [name, parameter] : parameters.all()) {
    if (parameter.rank() != 2 || !in_a_layer(name)) continue;
    Shape const from = base.find(name)->shape(), to = parameter.shape();
    double const r = static_cast<double>(from[1]) / static_cast<double>(to[1]);
    if (r != 1) parameters.rescale(name, from[0] == to[0] ? r : std::sqrt(r), r);
  }
}

std::optional<std::string> contradiction_of_mup(InitSettings const& init, Choice const& optimizer, Choice const& schedule) {
  if (init.scheme == "xavier")
    return "init.scheme: xavier scales by the width itself; with model.parametrization mup give normal or uniform";
  if (schedule.kind == "noam") return "train.schedule.kind: noam scales by the width itself, as model.parametrization mup does";
  if (optimizer.kind != "adam" && optimizer.kind != "adamw")
    return fmt::format("train.optimizer.kind: the rates of model.parametrization mup hold for adam and adamw, not for {}", optimizer.kind);
  auto const& settings = optimizer_settings(optimizer);
  auto const decays = [](GroupSettings const& group) { return group.weight_decay.value_or(0) > 0; };
  if (optimizer.kind == "adam" && (settings.weight_decay > 0 || std::ranges::any_of(settings.groups.items, decays)))
    return "train.optimizer: weight decay inside adam's gradient has no rule in model.parametrization mup; use adamw";
  return std::nullopt;
}

}  // namespace heed
