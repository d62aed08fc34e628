#pragma once

#include "autograd/random.hpp"
#include "experiments/data/dataset.hpp"

namespace heed {

/// Data whose rows are drawn one by one: training row r, counted over all batches, from Stream(seed, "data").child(r), held-out row r from
/// Stream(0, NAME).child(r) for any seed, where NAME is `held_out_stream`.
class DrawnDataset : public Dataset {
 public:
  DrawnDataset(std::uint64_t seed, std::string held_out_stream, Index held_out)
      : seed_(seed), held_out_stream_(std::move(held_out_stream)), held_out_(held_out) {}

  Batch training(Index index, Index batch, Index context) const final {
    return rows(Stream(seed_, "data"), {index * batch, batch}, context, false);
  }
  Index validation_batches(Index batch, Index context) const final { return (held_out_rows(context) + batch - 1) / batch; }
  Batch validation(Index index, Index batch, Index context) const final {
    return rows(held_out_draws(), rows_of_batch("validation", index, batch, held_out_rows(context)), context, true);
  }

 protected:
  /// These rows of training or held-out data, of at most `context` tokens.
  virtual Batch rows(Stream const& draws, RowRange const& range, Index context, bool held_out) const = 0;
  /// Number of rows of held-out data; each is a draw, unless overridden.
  virtual Index held_out_rows(Index /*context*/) const { return held_out_; }
  std::uint64_t seed() const { return seed_; }
  /// Number of held-out draws.
  Index held_out() const { return held_out_; }
  Stream held_out_draws() const { return Stream(0, held_out_stream_); }

 private:
  std::uint64_t seed_;
  std::string held_out_stream_;
  Index held_out_;
};

}  // namespace heed
