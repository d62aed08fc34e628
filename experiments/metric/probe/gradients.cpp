// Gradients of parameters and scores, and the Jacobian of softmax.

#include <cmath>
#include <map>

#include "autograd/ops/shape.hpp"
#include "experiments/metric/key.hpp"
#include "experiments/metric/probe/heads.hpp"

namespace heed {

namespace {

/// "blocks.3.mlp.up.weight" → "layer3", "decoder.blocks.3.norm1.bias" → "decoder.layer3", "token_embedding.weight" → "token_embedding".
std::string layer_of(std::string const& parameter) {
  auto const blocks = parameter.find("blocks.");
  if (blocks == std::string::npos) return parameter.substr(0, parameter.find('.'));
  auto const number = blocks + std::string_view("blocks.").size();
  return parameter.substr(0, blocks) + "layer" + parameter.substr(number, parameter.find('.', number) - number);
}

Declared<Probe> const by_layer_probe{
    {"gradients",
     "norm_by_layer",
     "√Σ_p ‖∂L/∂p‖²",
     "gradient norm of the parameters p of each layer or other part, of the training step, before clipping (as grad_norm)",
     {"gradients.norm.*", "", {}, ""},
     Probe::Input::step,
     [](Probed const& probed, Row& row) {
       std::map<std::string, double> squares;
       for (auto const& [name, parameter] : probed.parameters.all()) squares[layer_of(name)] += squared_norm(parameter.grad());
       for (auto const& [layer, sum] : squares) row.set("probe.gradients.norm." + layer, std::sqrt(sum));
     }}};

Declared<Probe> const by_parameter_probe{{"gradients",
                                          "norm_by_parameter",
                                          "‖∂L/∂p‖",
                                          "gradient norm of each parameter p by name, likewise",
                                          {"gradients.norm.*.*", "", {}, ""},
                                          Probe::Input::step,
                                          [](Probed const& probed, Row& row) {
                                            for (auto const& [name, parameter] : probed.parameters.all())
                                              row.set("probe.gradients.norm." + name, std::sqrt(squared_norm(parameter.grad())));
                                          }}};

Declared<Probe> const scores_probe{{"gradients",
                                    "scores",
                                    "‖∂L/∂e‖",
                                    "gradient norm of all scores e_ij of a head; L is the mean loss on the probes' batch",
                                    {"gradients.scores.layer*.head*", "", {}, ""},
                                    Probe::Input::score_gradients,
                                    [](Probed const& probed, Row& row) {
                                      for (std::size_t l = 0; l < probed.attention.size(); ++l) {
                                        Tensor const& gradient = probed.attention[l].gradient;
                                        for (Index head = 0; gradient.defined() && head < gradient.size(1); ++head)
                                          row.set(MetricKey::of_probe("gradients.scores", l, head).text(),
                                                  std::sqrt(squared_norm(slice(gradient, 1, head, head + 1))));
                                      }
                                    }}};

Declared<Probe> const trace_probe{
    {"gradients",
     "softmax_jacobian_trace",
     "tr(diag(p) − p pᵀ) = 1 − Σ_j p_j²",
     "trace of the softmax Jacobian at the weights p_j = a_j / Σ_j a_j of a query; mean and median over queries",
     {"gradients.jacobian_trace.layer*.head*", "", {}, ""},
     Probe::Input::attention,
     [](Probed const& probed, Row& row) {
       auto const of_row = [](AttentionRow const& r) {
         return r.has_scores() ? std::optional(1 - r[RowStatistic::squares]) : std::nullopt;
       };
       record_rows(probed.attention, "gradients.jacobian_trace", of_row, true, row);
     }}};

Declared<Probe> const norm_probe{{"gradients",
                                  "softmax_jacobian_norm",
                                  "‖diag(p) − p pᵀ‖_F = √(Σ_j p_j² − 2 Σ_j p_j³ + (Σ_j p_j²)²)",
                                  "Frobenius norm of the same Jacobian; mean and median over queries",
                                  {"gradients.jacobian_norm.layer*.head*", "", {}, ""},
                                  Probe::Input::attention,
                                  [](Probed const& probed, Row& row) {
                                    auto const of_row = [](AttentionRow const& r) -> std::optional<double> {
                                      if (!r.has_scores()) return std::nullopt;
                                      double const squares = r[RowStatistic::squares];
                                      return std::sqrt(std::max(squares - 2 * r[RowStatistic::cubes] + squares * squares, 0.0));
                                    };
                                    record_rows(probed.attention, "gradients.jacobian_norm", of_row, true, row);
                                  }}};

}  // namespace

double squared_norm(Tensor const& x) {
  if (!x.defined()) return 0;
  double sum = 0;
  for (double const value : x.to_vector()) sum += value * value;
  return sum;
}

}  // namespace heed
