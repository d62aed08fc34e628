// Statistics of attention per head: means over the rows of the probes' batch with a visible key.

#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "autograd/graph.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/product.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/ops/shape.hpp"
#include "experiments/metric/info.hpp"
#include "experiments/metric/probe/attention_maps.hpp"
#include "experiments/metric/probe/probe.hpp"
#include "experiments/metric/statistics.hpp"
#include "nn/decode.hpp"

namespace heed {

namespace {

Index heads_of(AttentionRecord const& layer) { return layer.rows.empty() ? layer.heads : layer.rows.front().size(1); }

/// Calls use(row) for every row of a head with a visible key, in all sequences.
void each_row(AttentionRecord const& layer, Index head, std::function<void(AttentionRow const&)> const& use) {
  for (Tensor const& rows : layer.rows) {
    Index const batch = rows.size(0), heads = rows.size(1), queries = rows.size(2);
    auto const all = rows.data<double>();
    for (Index b = 0; b < batch; ++b) {
      for (Index i = 0; i < queries; ++i) {
        auto const at = static_cast<std::size_t>((((b * heads + head) * queries) + i) * row_statistics);
        AttentionRow const row{all.subspan(at, static_cast<std::size_t>(row_statistics))};
        if (!std::isnan(row[RowStatistic::total])) use(row);
      }
    }
  }
}

Probe of_number(std::string const& name, std::string unit, std::string formula, std::string help, RowStatistic which, Bounds bounds = {}) {
  auto const of_row = [which](AttentionRow const& row) { return std::isnan(row[which]) ? std::nullopt : std::optional(row[which]); };
  return probe_of_rows(name, "attention." + name, std::move(unit), std::move(formula), std::move(help), of_row, false, bounds);
}

Declared<Probe> const entropy_probe{of_number("entropy", "nat", "−Σ_j p_j log p_j",
                                              "entropy of the weights p_j = a_j / Σ_j a_j; log n if they are uniform",
                                              RowStatistic::entropy, {.min = 0})};
Declared<Probe> const max_weight_probe{
    of_number("max_weight", "", "max_j a_j", "the largest weight", RowStatistic::largest_weight, fraction)};
Declared<Probe> const distance_probe{
    of_number("distance", "tokens", "Σ_j p_j |i − j|", "mean distance of the attended keys", RowStatistic::distance)};
Declared<Probe> const first_token_probe{
    of_number("first_token", "", "p_0", "share of the weight on the first token", RowStatistic::first, fraction)};
Declared<Probe> const score_mean_probe{
    of_number("score_mean", "", "ē = Σ_j e_j / n", "mean of the scores of the n visible keys", RowStatistic::score_mean)};
Declared<Probe> const score_variance_probe{of_number("score_variance", "", "Σ_j (e_j − ē)² / (n − 1)",
                                                     "variance of the scores of a query with at least two visible keys",
                                                     RowStatistic::score_variance)};
Declared<Probe> const max_score_probe{
    of_number("max_score", "", "max_j e_j", "the largest score (attention logit)", RowStatistic::largest_score)};

// Heads that attend mainly to the first token (Xiao et al. 2023; Gu et al. 2024).

constexpr double much = 0.3;

/// The number of heads of one or more layers, and of those whose mean weight on the first token is large.
struct Heads {
  double sinks = 0, all = 0;

  void record(Row& row, std::string const& name) const {
    if (all > 0) row.set(name, sinks / all);
  }
};

/// A query counts if it sees a key, also where it gives none of them any weight.
Heads sinks_of(AttentionRecord const& layer) {
  Heads found;
  for (Index head = 0; head < heads_of(layer); ++head) {
    double sum = 0, count = 0;
    each_row(layer, head, [&](AttentionRow const& row) {
      if (!row.has_scores()) return;
      double const total = row[RowStatistic::total];
      sum += total > 0 ? row[RowStatistic::first] * total : 0;
      count += 1;
    });
    if (count == 0) continue;
    found.all += 1;
    found.sinks += sum / count > much ? 1 : 0;
  }
  return found;
}

Declared<Probe> const sink_rate_probe{
    {"attention",
     "sink_rate",
     "share of heads with E a_0 > 0.3",
     "attention-sink heads: their mean weight on the first token over all queries is above 0.3; for the model "
     "and for each layer. In short sequences uniform weights exceed it too",
     {"attention.sink_rate", "", {}, "", fraction},
     Probe::Input::attention,
     [](Probed const& probed, Row& row) {
       auto const layers = mapped(probed.attention, sinks_of);
       Heads model;
       for (auto const& layer : layers) model.sinks += layer.sinks, model.all += layer.all;
       model.record(row, "probe.attention.sink_rate");
       for (std::size_t l = 0; l < layers.size(); ++l) layers[l].record(row, MetricKey::of_probe("attention.sink_rate", l).text());
     }}};

Declared<MetricInfo> const layer_sink_rate_metric{
    {"probe.attention.sink_rate.layer*", "", {}, "probe.attention.sink_rate of the heads of one layer", fraction}};

// Whether a head finds what followed the last time (Olsson et al. 2022): random tokens come twice,
//
//     c a b d c a b d
//             ↑ attends to the a that came after the first c
//
// and only the repetition determines where to attend.

/// The mean weight from a token of the second half to the one after its first coming.
double prefix_matching(AttentionRecord const& layer, Index head) {
  Tensor const& weights = layer.weights;
  Index const rows = weights.size(0), heads = weights.size(1), length = weights.size(2), half = length / 2;
  double sum = 0;
  for (Index b = 0; b < rows; ++b)
    for (Index i = half; i < length; ++i) sum += weights.at(((b * heads + head) * length + i) * length + i - half + 1);
  return sum / static_cast<double>(rows * half);
}

std::optional<std::string> induction_unavailable(Model const& model) {
  if (!model.decode({}, {})) return "it needs a causal model of one sequence of tokens";
  NoGrad const no_grad;
  if (recorded_attention(model, {{"inputs", Tensor::full({1, 2}, 0, DType::int64)}}, {.weights = true}).empty())
    return "the model has no attention";
  if (model.context() < 4) return fmt::format("model.context: {} is too short for two repeated tokens", model.context());
  return std::nullopt;
}

Declared<Probe> const induction_probe{probe_of_heads(
    "induction", "attention.induction", "a_ij, j = i − T/2 + 1, i ≥ T/2",
    "prefix matching: in sequences of T random tokens whose second half repeats the first, the weight on the token after the previous "
    "occurrence of the current one, mean over the second half. Up to 1 for an induction head, small for others",
    Probe::Input::repetition, prefix_matching, {}, induction_unavailable)};

// Statistics of linear attention per head: of its state at the end of the probes' sequences, and of its decay.

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

Probe probe_of_heads(std::string name, std::string const& metric, std::string formula, std::string help, Probe::Input input, HeadNumber f,
                     Bounds bounds, std::optional<std::string> (*unavailable)(Model const&)) {
  auto const measure = [metric, f = std::move(f)](Probed const& probed, Row& row) {
    for (std::size_t l = 0; l < probed.attention.size(); ++l)
      for (Index head = 0; head < heads_of(probed.attention[l]); ++head)
        if (auto const value = f(probed.attention[l], head)) row.set(MetricKey::of_probe(metric, l, head).text(), *value);
  };
  return {metric.substr(0, metric.find('.')),
          std::move(name),
          std::move(formula),
          std::move(help),
          {metric + ".layer*.head*", "", {}, "", bounds},
          input,
          measure,
          unavailable};
}

Probe probe_of_rows(std::string name, std::string const& metric, std::string unit, std::string formula, std::string help, RowNumber f,
                    bool with_median, Bounds bounds) {
  Probe probe = probe_of_heads(std::move(name), metric, std::move(formula), std::move(help), Probe::Input::attention, nullptr, bounds);
  probe.records.unit = std::move(unit);
  probe.measure = [metric, f = std::move(f), with_median](Probed const& probed, Row& row) {
    record_rows(probed.attention, metric, f, with_median, row);
  };
  return probe;
}

void record_rows(std::vector<AttentionRecord> const& layers, std::string const& metric, RowNumber const& f, bool with_median, Row& row) {
  for (std::size_t l = 0; l < layers.size(); ++l) {
    for (Index head = 0; head < heads_of(layers[l]); ++head) {
      std::vector<double> found;
      each_row(layers[l], head, [&](AttentionRow const& each) {
        auto const value = each[RowStatistic::total] > 0 ? f(each) : std::nullopt;
        if (value) found.push_back(*value);
      });
      if (found.empty()) continue;
      auto key = MetricKey::of_probe(metric, l, head);
      row.set(key.text(), std::accumulate(found.begin(), found.end(), 0.0) / static_cast<double>(found.size()));
      key.statistic = "median";
      if (with_median) row.set(key.text(), median(found));
    }
  }
}

}  // namespace heed
