#pragma once

#include "autograd/tensor.hpp"

namespace heed::kernels {

/// Calls body with a value of the C++ type (float or double) of `dtype`.
template <class Body>
decltype(auto) with_real(DType dtype, Body&& body) {
  if (dtype == DType::float32) return body(float{});
  return body(double{});
}

/// Calls body(x's elements, y's elements) for two real tensors of one dtype.
template <class Body>
void with_arrays(Tensor const& x, Tensor& y, Body&& body) {
  with_real(x.dtype(), [&](auto type) { body(x.data<decltype(type)>().data(), y.mutable_data<decltype(type)>().data()); });
}

/// Calls body with a value of the C++ type (float, double or Index) of `dtype`.
template <class Body>
decltype(auto) with_any(DType dtype, Body&& body) {
  if (dtype == DType::int64) return body(Index{});
  return with_real(dtype, body);
}

}  // namespace heed::kernels
