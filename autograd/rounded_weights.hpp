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

/// Weights that do not change while it lives: a decoder's, which hands it to linear(). Where products are made in bfloat16, each is rounded
/// when a single row is first multiplied by it, and every row after reads what was rounded, in half the bytes. The results are the same,
/// bit by bit.
class RoundedWeights {
 public:
  RoundedWeights();
  ~RoundedWeights();
  RoundedWeights(RoundedWeights const&) = delete;
  RoundedWeights& operator=(RoundedWeights const&) = delete;

  /// A weight [out, in] of float32.
  kernels::RoundedMatrix const& of(Tensor const& weight);

 private:
  struct Rounded;
  using Place = std::tuple<void const*, std::int64_t,
                           std::int64_t>;              ///< where the weight's array begins, out, in
  std::map<Place, std::unique_ptr<Rounded>> rounded_;  ///< with the array itself: another could take its place
};

}  // namespace heed
