// How many heads rest on the first token, whatever it says (Xiao et al. 2023; Gu et al. 2024).

#include <fmt/format.h>

#include "experiments/probe/probe.hpp"

namespace heed {

namespace {

constexpr double much = 0.3;  // Gu et al. 2024

/// Of the heads of one layer or more, those whose mean weight on the first token is large.
struct Heads {
  double sinks = 0, all = 0;

  void record(Row& row, std::string const& name) const {
    if (all > 0) row.set(name, sinks / all);
  }
};

/// A query counts if it sees a key, also where it gives none of them any weight.
Heads heads_of(Sight::Layer const& layer) {
  Tensor const all = layer.weights.detach().to(DType::float64);
  auto const weights = all.data<double>();
  std::int64_t const rows = all.size(0), heads = all.size(1), queries = all.size(2), keys = all.size(3);
  Heads found;
  for (std::int64_t head = 0; head < heads; ++head) {
    double sum = 0, count = 0;
    for (std::int64_t b = 0; b < rows; ++b) {
      for (std::int64_t i = 0; i < queries; ++i) {
        if (layer.visibility.count(b, i, keys) == 0) continue;
        sum += weights[static_cast<std::size_t>(((b * heads + head) * queries + i) * keys)];
        count += 1;
      }
    }
    if (count == 0) continue;
    found.all += 1;
    found.sinks += sum / count > much ? 1 : 0;
  }
  return found;
}

DeclaredProbe const sink_rate{{"attention",
                               "sink_rate",
                               "share of heads with E a_0 > 0.3",
                               "heads that rest on the first token: their mean weight on it over all queries is large; of the model, and "
                               "of each layer. Where rows are short, even weights are large too",
                               {"attention.sink_rate", "", {}, ""},
                               Probe::Sees::attention,
                               [](Probed const& probed, Row& row) {
                                 std::string const name = "probe.attention.sink_rate";
                                 std::vector<Heads> layers;
                                 Heads model;
                                 for (auto const& layer : probed.sight.attention) {
                                   layers.push_back(heads_of(layer));
                                   model.sinks += layers.back().sinks;
                                   model.all += layers.back().all;
                                 }
                                 model.record(row, name);
                                 for (std::size_t l = 0; l < layers.size(); ++l) layers[l].record(row, fmt::format("{}.layer{}", name, l));
                               }}};

DeclaredMetric const of_layers{{"probe.attention.sink_rate.layer*", "", {}, "the share of a layer's heads, as probe.attention.sink_rate"}};

}  // namespace

}  // namespace heed
