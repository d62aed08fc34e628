// The sharpness at which a trained head's softmax selects.

#include "experiments/metric/gap_function.hpp"

#include <functional>

#include "experiments/metric/key.hpp"
#include "experiments/metric/probe/probe.hpp"
#include "experiments/metric/statistics.hpp"

namespace heed {

namespace {

/// Of all queries of a head that see three keys or more.
std::vector<double> gaps_of(AttentionRecord const& layer, Index head) {
  Tensor const& scores = layer.scores;
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
  return gaps;
}

Declared<Probe> const gap_probe{{"gradients",
                                 "gap_function",
                                 "sup_t log N(t)/t, N(t) the number of other scores at most t below the largest",
                                 "far above 1 the weights spread, far below 1 the largest takes all (2605.12697); median over queries",
                                 {"gradients.gap_function.layer*.head*", "", {}, "", {.min = 0}},
                                 Probe::Input::score_gradients,
                                 [](Probed const& probed, Row& row) {
                                   for (std::size_t l = 0; l < probed.attention.size(); ++l)
                                     for (Index head = 0; probed.attention[l].scores.defined() && head < probed.attention[l].heads; ++head)
                                       if (auto const gaps = gaps_of(probed.attention[l], head); !gaps.empty())
                                         row.set(MetricKey::of_probe("gradients.gap_function", l, head).text(), median(gaps));
                                 }}};

}  // namespace

}  // namespace heed
