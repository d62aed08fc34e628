#include "autograd/ops/rounded_weights.hpp"

namespace heed {

namespace {

thread_local RoundedWeights* used = nullptr;

}  // namespace

RoundedWeights::Use::Use(RoundedWeights& weights) : Temporarily(used, &weights) {}

RoundedWeights* RoundedWeights::in_use() { return used; }

kernels::RoundedMatrix const& RoundedWeights::of(Tensor const& weight) {
  float const* const data = weight.data<float>().data();
  Index const out = weight.size(0), in = weight.size(1);
  WeightKey const key{data, out, in};
  auto found = rounded_.find(key);
  if (found == rounded_.end()) found = rounded_.emplace(key, RoundedWeight{weight.detach(), {data, out, in}}).first;
  return found->second.matrix;
}

}  // namespace heed
