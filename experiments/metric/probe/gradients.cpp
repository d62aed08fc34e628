// Gradients of parameters and scores, the Jacobian of softmax, and the sharpness at which it selects.

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "autograd/ops/shape.hpp"
#include "experiments/metric/probe/probe.hpp"
#include "experiments/metric/statistics.hpp"

namespace heed {

namespace {

/// "blocks.3.mlp.up.weight" → "layer3", "decoder.blocks.3.norm1.bias" → "decoder.layer3", "token_embedding.weight" → "token_embedding".
std::string layer_of(std::string const& parameter) {
  auto const blocks = parameter.find("blocks.");
  if (blocks == std::string::npos) return parameter.substr(0, parameter.find('.'));
  auto const number = blocks + std::string_view("blocks.").size();
  return parameter.substr(0, blocks) + "layer" + parameter.substr(number, parameter.find('.', number) - number);
}

std::optional<double> score_norm(AttentionRecord const& layer, Index head) {
  if (!layer.gradient.defined()) return std::nullopt;
  return std::sqrt(squared_norm(slice(layer.gradient, 1, head, head + 1)));
}

/// The median over the queries of a head that see three keys or more.
std::optional<double> median_gap(AttentionRecord const& layer, Index head) {
  Tensor const& scores = layer.scores;
  if (!scores.defined()) return std::nullopt;
  Index const heads = scores.size(1), queries = scores.size(2), keys = scores.size(3);
  std::vector<double> gaps;
  for (Index b = 0; b < scores.size(0); ++b)
    for (Index i = 0; i < queries; ++i) {
      auto const [first, last] = layer.visibility.range(b, i, keys);
      std::vector<double> row;
      for (Index j = first; j < last; ++j) row.push_back(scores.at(((b * heads + head) * queries + i) * keys + j));
      std::ranges::sort(row, std::greater());
      if (row.size() > 2) gaps.push_back(gap_function(row));
    }
  return gaps.empty() ? std::nullopt : std::optional(median(gaps));
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

Declared<Probe> const scores_probe{probe_of_heads("scores", "gradients.scores", "‖∂L/∂e‖",
                                                  "gradient norm of all scores e_ij of a head; L is the mean loss on the probes' batch",
                                                  Probe::Input::score_gradients, score_norm)};

Declared<Probe> const trace_probe{probe_of_rows(
    "softmax_jacobian_trace", "gradients.jacobian_trace", "", "tr(diag(p) − p pᵀ) = 1 − Σ_j p_j²",
    "trace of the softmax Jacobian at the weights p_j = a_j / Σ_j a_j of a query; mean and median over queries",
    [](AttentionRow const& r) { return r.has_scores() ? std::optional(1 - r[RowStatistic::squares]) : std::nullopt; }, true)};

Declared<Probe> const norm_probe{probe_of_rows(
    "softmax_jacobian_norm", "gradients.jacobian_norm", "", "‖diag(p) − p pᵀ‖_F = √(Σ_j p_j² − 2 Σ_j p_j³ + (Σ_j p_j²)²)",
    "Frobenius norm of the same Jacobian; mean and median over queries",
    [](AttentionRow const& r) -> std::optional<double> {
      if (!r.has_scores()) return std::nullopt;
      double const squares = r[RowStatistic::squares];
      return std::sqrt(std::max(squares - 2 * r[RowStatistic::cubes] + squares * squares, 0.0));
    },
    true)};

Declared<Probe> const gap_probe{probe_of_heads(
    "gap_function", "gradients.gap_function", "sup_t log N(t)/t, N(t) the number of other scores at most t below the largest",
    "far above 1 the weights spread, far below 1 the largest takes all (2605.12697); median over queries", Probe::Input::score_gradients,
    median_gap, {.min = 0})};

}  // namespace

double squared_norm(Tensor const& x) {
  if (!x.defined()) return 0;
  double sum = 0;
  for (double const value : x.to_vector()) sum += value * value;
  return sum;
}

}  // namespace heed
