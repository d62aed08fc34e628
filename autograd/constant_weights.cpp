#include "autograd/constant_weights.hpp"

#include <utility>

#include "autograd/kernels/rounded_matrix.hpp"

namespace heed {

namespace {
thread_local ConstantWeights* in_use = nullptr;
}

struct ConstantWeights::Rounded {
  Tensor weight;
  kernels::RoundedMatrix matrix;
};

ConstantWeights::ConstantWeights() = default;
ConstantWeights::~ConstantWeights() = default;

ConstantWeights::Use::Use(ConstantWeights& weights) : before_(std::exchange(in_use, &weights)) {}
ConstantWeights::Use::~Use() { in_use = before_; }

kernels::RoundedMatrix const* ConstantWeights::rounded(Tensor const& weight) {
  if (in_use == nullptr) return nullptr;
  float const* const data = weight.data<float>().data();
  std::int64_t const out = weight.size(0), in = weight.size(1);
  auto& kept = in_use->rounded_[{data, out, in}];
  if (kept == nullptr) kept = std::make_unique<Rounded>(Rounded{weight.detach(), {data, out, in}});
  return &kept->matrix;
}

}  // namespace heed
