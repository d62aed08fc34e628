#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace heed {

/// sup over t > 0 of log N(t)/t, N(t) the number of other scores at most t below the largest (2605.12697); of scores in falling order.
inline double gap_function(std::vector<double> const& scores) {
  double largest = 0;
  for (std::size_t k = 2; k < scores.size(); ++k)
    if (double const gap = scores.front() - scores[k]; gap > 0) largest = std::max(largest, std::log(static_cast<double>(k)) / gap);
  return largest;
}

}  // namespace heed
