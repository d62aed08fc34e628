#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>

#include "autograd/tensor.hpp"

namespace heed {

namespace kernels {
class RoundedMatrix;
}

/// Weights that do not change while it lives, a decoder's. Where products are made in bfloat16, each is rounded when linear() first
/// multiplies a single row by it, and every row after reads what was rounded, in half the bytes. The results are the same, bit by bit.
class RoundedWeights {
 public:
  RoundedWeights();
  ~RoundedWeights();
  RoundedWeights(RoundedWeights const&) = delete;
  RoundedWeights& operator=(RoundedWeights const&) = delete;

  /// While it lives, linear() on this thread takes weights from here. The inner of two counts.
  class Use {
   public:
    explicit Use(RoundedWeights& weights);
    ~Use();
    Use(Use const&) = delete;
    Use& operator=(Use const&) = delete;

   private:
    RoundedWeights* before_;
  };
  /// Those that this thread uses; null: none.
  static RoundedWeights* in_use();

  /// A weight [out, in] of float32.
  kernels::RoundedMatrix const& of(Tensor const& weight);

 private:
  struct Rounded;
  using Place = std::tuple<void const*, std::int64_t,
                           std::int64_t>;              ///< where the weight's array begins, out, in
  std::map<Place, std::unique_ptr<Rounded>> rounded_;  ///< with the array itself: another could take its place
};

}  // namespace heed
