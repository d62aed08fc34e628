#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace heed {

/// A value along training: at each step the mean over seeds with its 95 % interval, which is the mean itself for one seed.
struct CurvePoint {
  double step = 0, mean = 0, low = 0, high = 0;
};
using Curve = std::vector<CurvePoint>;

/// The curve of several seeds. Where there are more than `most` steps, each seed is averaged over neighbouring ones first. A point at which
/// a value is not finite is NaN. The curve ends where the first of the seeds ends (train.stop): a mean over those that go on would be of
/// other trials than the points before.
Curve curve_of(std::vector<std::vector<std::pair<std::int64_t, double>>> const& seeds, std::size_t most = 100);

/// Heights at least `gap` apart within [0, 1], in the given order of heights and as near to them as it goes: of labels beside a figure.
std::vector<double> spread(std::vector<double> heights, double gap);

}  // namespace heed
