#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "autograd/random.hpp"
#include "experiments/data/sequence_pair.hpp"

namespace heed {

/// The most places that any batch has of a part, padding included: its rows times the longest of them.
struct PairPlaces {
  std::int64_t source = 0, target = 0;
};

/// Pairs in batches of training, an epoch after another: each is every pair once, in an order drawn from Stream(seed, "data").child(epoch).
/// Rows of a batch are of about one length, so that little of it is padding, and batches come in random order.
///
/// By rows: of `pool` batches in a row the pairs are sorted by length and cut into batches anew; the pairs at an epoch's end that fill no
/// batch are left out. By `tokens`: all pairs are sorted by their longest side and cut so that the rows of a batch times the longest side
/// of any are at most so many. Where the cuts are is the same in every epoch; which pairs of one length are together is not.
class PairBatches {
 public:
  /// `pairs`: to be kept by the caller. `tokens`: 0 for batches by rows; else at least as many as the longest side and its mark have.
  PairBatches(std::span<SequencePair const> pairs, std::int64_t pool, std::int64_t tokens, std::uint64_t seed);

  /// How many batches an epoch has, of `batch` rows if they are by rows.
  std::int64_t per_epoch(std::int64_t batch) const;
  /// Of training's batch number `index`.
  std::vector<SequencePair const*> rows(std::int64_t index, std::int64_t batch) const;
  /// Of the batches of any epoch; 0 for batches by rows.
  PairPlaces most_places() const;

 private:
  /// The pairs of an epoch in the order in which they are read, and where batches begin; the last is the end.
  struct Epoch {
    std::vector<std::int32_t> order;
    std::vector<std::size_t> begins;
  };
  Epoch by_rows(Stream const& draws, std::size_t rows) const;
  Epoch by_tokens(Stream const& draws) const;

  std::span<SequencePair const> pairs_;
  std::size_t pool_;
  std::uint64_t seed_;
  std::vector<std::size_t> cuts_;  // of the pairs sorted by their longest side, batches by tokens; the last is the end
  mutable std::mutex drawing_;     // one epoch is kept because all of its batches need it
  mutable std::pair<std::int64_t, std::int64_t> drawn_{-1, 0};
  mutable Epoch epoch_;
};

}  // namespace heed
