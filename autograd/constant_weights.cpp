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
  auto const found = in_use->rounded_.find(data);
  if (found != in_use->rounded_.end()) return &found->second.matrix;
  Rounded fresh{weight.detach(), {data, weight.size(0), weight.size(1)}};
  return &in_use->rounded_.emplace(data, std::move(fresh)).first->second.matrix;
}

}  // namespace heed
