// Statistics of linear attention per head: of its state at the end of the probes' sequences, and of its decay.

#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/product.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/ops/shape.hpp"
#include "experiments/metric/info.hpp"
#include "experiments/metric/probe/probe.hpp"

namespace heed {

namespace {

/// Records the mean over sequences of a number per sequence and head, [B, H]; layers where it is undefined have none.
Probe of_layers(std::string const& name, std::string const& unit, std::string formula, std::string help, Bounds bounds,
                Tensor (*number)(AttentionRecord const&)) {
  return {"attention",
          name,
          std::move(formula),
          std::move(help) + "; of linear attention alone",
          {"attention." + name + ".layer*.head*", unit, {}, "", bounds},
          Probe::Input::attention,
          [name, number](Probed const& probed, Row& row) {
            for (std::size_t l = 0; l < probed.attention.size(); ++l) {
              Tensor const found = number(probed.attention[l]);
              if (!found.defined()) continue;
              auto const means = mean(found, {0}).to_vector();
              for (std::size_t head = 0; head < means.size(); ++head)
                row.set(MetricKey::of_probe("attention." + name, l, static_cast<Index>(head)).text(), means[head]);
            }
          }};
}

Declared<Probe> const decay_length_probe{
    of_layers("decay_length", "tokens", "1 / (1 − e^ḡ), ḡ the mean of g over tokens and entries",
              "effective length of the decay: how many tokens a state lasts", {.min = 1}, [](AttentionRecord const& layer) {
                if (!layer.log_decay.defined()) return Tensor();
                Tensor const& g = layer.log_decay;
                Tensor const means = mean(reshape(g, {g.size(0), g.size(1), layer.heads, g.size(2) / layer.heads}), {1, 3});
                return 1.0 / -expm1(means);
              })};

Declared<Probe> const state_norm_probe{
    of_layers("state_norm", "", "‖S_T‖_F", "norm of the state after the last token", {.min = 0}, [](AttentionRecord const& layer) {
      return layer.state.defined() ? sqrt(sum_of_squares(layer.state, {2, 3})) : Tensor();
    })};

Declared<Probe> const state_rank_probe{of_layers(
    "state_rank", "", "tr(G)² / tr(G²), G = S_Tᵀ S_T", "effective rank of the state after the last token: of n equal singular values, n",
    {.min = 0}, [](AttentionRecord const& layer) {
      if (!layer.state.defined()) return Tensor();
      Tensor const gram = matmul(layer.state, layer.state, true);
      Tensor const trace = sum_of_squares(layer.state, {2, 3});
      return trace * trace / maximum(sum_of_squares(gram, {2, 3}), Tensor::scalar(1e-30, trace.dtype()));
    })};

}  // namespace

}  // namespace heed
