#pragma once

#include <map>
#include <memory>
#include <tuple>

#include "autograd/tensor.hpp"

namespace heed {

namespace kernels {
class RoundedMatrix;
}

/// A decoder's constant weights. Where products are made in bfloat16, a weight is rounded when linear() first multiplies a single row by
/// it, and later rows read the rounded copy, half the bytes. Results have the same bits.
class RoundedWeights {
 public:
  RoundedWeights();
  ~RoundedWeights();
  RoundedWeights(RoundedWeights const&) = delete;
  RoundedWeights& operator=(RoundedWeights const&) = delete;

  /// While it lives, linear() on this thread uses these weights. The innermost one counts.
  class Use {
   public:
    explicit Use(RoundedWeights& weights);
    ~Use();
    Use(Use const&) = delete;
    Use& operator=(Use const&) = delete;

   private:
    RoundedWeights* before_;
  };
  /// The one that this thread uses; null: none.
  static RoundedWeights* in_use();

  /// A weight [out, in] of float32.
  kernels::RoundedMatrix const& of(Tensor const& weight);

 private:
  struct Rounded;
  using WeightKey = std::tuple<void const*, Index,
                               Index>;                     ///< start of the weight's array, out, in
  std::map<WeightKey, std::unique_ptr<Rounded>> rounded_;  ///< keeps the array alive: another could reuse its address
};

}  // namespace heed
