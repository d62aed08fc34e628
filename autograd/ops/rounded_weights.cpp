#include "autograd/ops/rounded_weights.hpp"

#include <utility>

#include "autograd/blas/products.hpp"

namespace heed {

namespace {

thread_local RoundedWeights* used = nullptr;

}  // namespace

RoundedWeights::Use::Use(RoundedWeights& weights) : before_(std::exchange(used, &weights)) {}
RoundedWeights::Use::~Use() { used = before_; }

RoundedWeights* RoundedWeights::in_use() { return used; }

struct RoundedWeights::Rounded {
  Tensor weight;
  kernels::RoundedMatrix matrix;
};

RoundedWeights::RoundedWeights() = default;
RoundedWeights::~RoundedWeights() = default;

kernels::RoundedMatrix const& RoundedWeights::of(Tensor const& weight) {
  float const* const data = weight.data<float>().data();
  Index const out = weight.size(0), in = weight.size(1);
  auto& kept = rounded_[{data, out, in}];
  if (kept == nullptr) kept = std::make_unique<Rounded>(Rounded{weight.detach(), {data, out, in}});
  return kept->matrix;
}

}  // namespace heed
