#include "experiments/metric/probe/heads.hpp"

#include <cmath>
#include <numeric>
#include <vector>

#include "experiments/metric/key.hpp"
#include "experiments/metric/statistics.hpp"

namespace heed {

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

Index heads_of(AttentionRecord const& layer) { return layer.rows.empty() ? 0 : layer.rows.front().size(1); }

void record_rows(std::vector<AttentionRecord> const& layers, std::string const& name,
                 std::function<std::optional<double>(AttentionRow const&)> const& f, bool with_median, Row& row) {
  for (std::size_t l = 0; l < layers.size(); ++l) {
    for (Index head = 0; head < heads_of(layers[l]); ++head) {
      std::vector<double> found;
      each_row(layers[l], head, [&](AttentionRow const& each) {
        auto const value = each[RowStatistic::total] > 0 ? f(each) : std::nullopt;
        if (value) found.push_back(*value);
      });
      if (found.empty()) continue;
      auto key = MetricKey::of_probe(name, l, head);
      row.set(key.text(), std::accumulate(found.begin(), found.end(), 0.0) / static_cast<double>(found.size()));
      key.statistic = "median";
      if (with_median) row.set(key.text(), median(found));
    }
  }
}

}  // namespace heed
