#include "experiments/metric/loss_by_place.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "autograd/ops/softmax.hpp"
#include "nn/batch.hpp"

namespace heed {

double LossByPlace::PlaceLoss::standard_error() const {
  if (count < 2) return std::numeric_limits<double>::quiet_NaN();
  return std::sqrt(squares / static_cast<double>(count - 1) / static_cast<double>(count));
}

void LossByPlace::observe(Batch const& batch, std::int64_t first, Tensor const& logits) {
  Tensor const& targets = batch["targets"];
  std::int64_t const length = targets.size(1), vocabulary = logits.size(1);
  Tensor const log_shares = log_softmax(logits);
  places_.resize(std::max(places_.size(), static_cast<std::size_t>(length)));
  for (std::int64_t i = 0; i < logits.size(0); ++i) {
    auto const target = targets.data<std::int64_t>()[static_cast<std::size_t>(first + i)];
    if (target < 0) continue;
    double const loss = -log_shares.at(i * vocabulary + target);
    PlaceLoss& place = places_[static_cast<std::size_t>((first + i) % length)];  // Welford's update
    place.count += 1;
    double const beside = loss - place.mean;
    place.mean += beside / static_cast<double>(place.count);
    place.squares += beside * (loss - place.mean);
  }
}

}  // namespace heed
