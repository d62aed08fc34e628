// The fraction of attention-sink heads, which attend mainly to the first token (Xiao et al. 2023; Gu et al. 2024).

#include "experiments/metric/key.hpp"
#include "experiments/metric/probe/heads.hpp"

namespace heed {

namespace {

constexpr double much = 0.3;  // Gu et al. 2024

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
       std::vector<Heads> layers;
       Heads model;
       for (auto const& layer : probed.attention) {
         layers.push_back(sinks_of(layer));
         model.sinks += layers.back().sinks;
         model.all += layers.back().all;
       }
       model.record(row, "probe.attention.sink_rate");
       for (std::size_t l = 0; l < layers.size(); ++l) layers[l].record(row, MetricKey::of_probe("attention.sink_rate", l).text());
     }}};

Declared<MetricInfo> const layer_sink_rate_metric{
    {"probe.attention.sink_rate.layer*", "", {}, "probe.attention.sink_rate of the heads of one layer", fraction}};

}  // namespace

}  // namespace heed
