#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "autograd/index.hpp"
#include "experiments/report/figure.hpp"

namespace heed {

/// A value of several seeds during training: at each step the mean with its 95 % interval, or the value itself for one seed. With more
/// than `most` steps, each seed is first averaged over neighbouring ones. A point with a value that is not finite is NaN. The curve ends
/// where the first seed ends (train.stop), because later means would be over other trials.
Curve curve_of(std::vector<std::vector<std::pair<Index, double>>> const& seeds, std::size_t most = 100);

/// Positions at least `gap` apart within [0, 1], in the order of `heights` and as close to them as possible: for labels beside a figure.
std::vector<double> spread(std::vector<double> heights, double gap);

}  // namespace heed
