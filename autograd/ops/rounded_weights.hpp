#pragma once

#include <map>
#include <tuple>

#include "autograd/blas/products.hpp"
#include "autograd/tensor.hpp"

namespace heed {

/// A decoder's constant weights. Where products are made in bfloat16, a weight is rounded when linear() first multiplies a single row by
/// it, and later rows read the rounded copy, half the bytes. Results have the same bits.
class RoundedWeights {
 public:
  /// While it lives, linear() on this thread uses these weights. The innermost one counts.
  struct Use : Temporarily<RoundedWeights*> {
    explicit Use(RoundedWeights& weights);
  };
  /// The one that this thread uses; null: none.
  static RoundedWeights* in_use();

  /// A weight [out, in] of float32.
  kernels::RoundedMatrix const& of(Tensor const& weight);

 private:
  struct RoundedWeight {
    Tensor weight;  ///< keeps the array alive: another could reuse its address
    kernels::RoundedMatrix matrix;
  };
  using WeightKey = std::tuple<void const*, Index, Index>;  ///< start of the weight's array, out, in
  std::map<WeightKey, RoundedWeight> rounded_;
};

}  // namespace heed
