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

/// Weights that do not change for a while: a decoder's. Where products are made in bfloat16, each is rounded when a single row first meets
/// it, and what was rounded is kept and read again by every row after, in half the bytes. The results are the same, bit by bit.
class ConstantWeights {
 public:
  ConstantWeights();
  ~ConstantWeights();
  ConstantWeights(ConstantWeights const&) = delete;
  ConstantWeights& operator=(ConstantWeights const&) = delete;

  /// While it lives, linear() on this thread looks here first.
  class Use {
   public:
    explicit Use(ConstantWeights& weights);
    ~Use();
    Use(Use const&) = delete;
    Use& operator=(Use const&) = delete;

   private:
    ConstantWeights* before_;
  };

  /// A weight [out, in] as a row's product in bfloat16 reads it, if there are constant weights in use on this thread; else null.
  static kernels::RoundedMatrix const* rounded(Tensor const& weight);

 private:
  struct Rounded;
  using Place = std::tuple<void const*, std::int64_t, std::int64_t>;  ///< where the weight's array begins, out, in
  std::map<Place, std::unique_ptr<Rounded>> rounded_;                 ///< with the array itself: another could take its place
};

}  // namespace heed
