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

/// What the exchanges of one process have cost so far.
struct ExchangeCost {
  double bytes = 0;            ///< sent to other ranks, of gradients
  double messages = 0;         ///< each to one rank
  double seconds_waiting = 0;  ///< for other ranks, and for gradients that did not go during the backward walk
};

/// Sums a step's gradients over all ranks, while the last micro-batch's backward walk goes on. The numbers of all parameters, the latest
/// first, are one row, which is cut into buckets of 4 MiB. A bucket whose gradients are there is sent: to each rank its piece of the
/// bucket, of every subtree; that rank sums the pieces by the tree and sends the sum to all.
class GradientExchange {
 public:
  /// For one step of `count` micro-batches. `sum`: of this rank's part of them.
  GradientExchange(Parameters const& parameters, std::int64_t count, GradientSum const& sum, ExchangeCost& cost);
  ~GradientExchange();

  /// Parameter i has the gradient of this rank's last subtree. Sends what can be sent.
  void ready(std::size_t i);
  /// So have all others, as far as they have one. Returns, by parameter, whether it has a gradient here.
  std::vector<bool> all_ready();
  /// Waits for all sums and puts them into the parameters' grad(). A parameter that has a gradient on no rank (`present`: on one of them)
  /// has none.
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
  std::vector<std::vector<MicroBatches>> parts_;  ///< of every rank
  std::vector<std::int64_t> begins_;              ///< of each parameter in the row
  std::vector<bool> ready_;
  std::vector<Tensor> sums_;                    ///< by parameter
  std::size_t first_ready_;                     ///< all parameters from here on are
  std::int64_t sent_ = 0;                       ///< numbers of the row
  std::list<std::unique_ptr<Bucket>> buckets_;  ///< on their way, in order
};

}  // namespace heed
