#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "experiments/run/gradient_sum.hpp"
#include "experiments/run/ranks.hpp"

namespace heed {

/// Cost of one process's gradient exchanges so far.
struct ExchangeCost {
  double bytes = 0;            ///< of gradients, sent to other ranks
  double messages = 0;         ///< each to one other rank
  double seconds_waiting = 0;  ///< for other ranks, and for transfers not over when the backward pass ended
};

/// Sums a step's gradients over all ranks, during the backward pass of the last micro-batch. The gradients of all parameters form one row,
/// the last parameter first, which is cut into buckets of 4 MiB. A bucket is sent as soon as its gradients are complete: each rank gets its
/// piece of the bucket for every subtree, sums the pieces by the tree, and sends the sum to all ranks.
class GradientExchange {
 public:
  /// For one step of `count` micro-batches. `sum`: the gradients of this rank's micro-batches.
  GradientExchange(Parameters const& parameters, std::int64_t count, GradientSum const& sum, ExchangeCost& cost);
  ~GradientExchange();

  /// To be called when parameter i has the gradient of this rank's last subtree. Sends the buckets that are complete.
  void ready(std::size_t i);
  /// To be called when all parameters have their gradients, if any. Sends the rest. Returns, by parameter, whether it has a gradient on
  /// this rank.
  std::vector<bool> all_ready();
  /// Waits for all sums and puts them into the parameters' grad(). `present`: by parameter, whether it has a gradient on any rank; without
  /// one its grad() is undefined.
  void finish(std::vector<bool> const& present);

 private:
  struct Bucket;
  void send_ready();
  void send(std::int64_t begin, std::int64_t end);
  void sum_and_gather(Bucket& bucket) const;
  void advance(bool wait);
  Tensor source(std::size_t i, std::size_t set) const;
  template <class F>
  void for_parameters(std::int64_t begin, std::int64_t end, F const& f) const;
  void read(std::int64_t begin, std::int64_t end, std::size_t set, std::byte* into) const;
  void write(std::int64_t begin, std::int64_t end, std::byte const* from);

  std::vector<std::pair<std::string, Tensor>> const& parameters_;
  DType const dtype_;
  std::int64_t const count_;
  GradientSum const& sum_;
  ExchangeCost& cost_;
  std::vector<std::vector<MicroBatches>> parts_;  ///< subtrees of every rank
  std::vector<std::int64_t> begins_;              ///< first number of each parameter in the row
  std::vector<bool> ready_;
  std::vector<Tensor> sums_;                    ///< by parameter
  std::size_t first_ready_;                     ///< all parameters from this one on are ready
  std::int64_t sent_ = 0;                       ///< numbers of the row that were sent
  std::list<std::unique_ptr<Bucket>> buckets_;  ///< in transfer, in order
};

}  // namespace heed
