#pragma once

#include "autograd/tensor.hpp"

namespace heed::kernels {

/// Calls body with a value of the C++ type (float or double) of `dtype`.
template <class Body>
decltype(auto) with_real(DType dtype, Body&& body) {
  if (dtype == DType::float32) return body(float{});
  return body(double{});
}

/// Calls body with a value of the C++ type (float, double or Index) of `dtype`.
template <class Body>
decltype(auto) with_any(DType dtype, Body&& body) {
  if (dtype == DType::int64) return body(Index{});
  return with_real(dtype, body);
}

}  // namespace heed::kernels
