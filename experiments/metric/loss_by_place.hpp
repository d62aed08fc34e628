#pragma once

#include <cstdint>
#include <vector>

#include "experiments/metric/metric.hpp"

namespace heed {

/// Cross entropy of the targets that count, by the place in the row at which they are predicted.
class LossByPlace : public Metric {
 public:
  struct PlaceLoss {
    std::int64_t count = 0;
    double mean = 0, squares = 0;  ///< of the losses, and the sum of the squares of what they are beside it

    /// Of the mean; NaN for fewer than two losses.
    double standard_error() const;
  };

  void observe(Batch const& batch, std::int64_t first, Tensor const& logits) override;
  void add(EvaluatedBatch const&) override {}
  void write(Row&, std::string const&) const override {}

  /// From the first place on, as many as the longest row has.
  std::vector<PlaceLoss> const& places() const { return places_; }

 private:
  std::vector<PlaceLoss> places_;
};

}  // namespace heed
