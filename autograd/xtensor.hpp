#pragma once

// The only place that includes xtensor (its headers moved in version 0.26), and conversions between its arrays and Tensors without a copy.
// Costs 2 s of compile time, unless precompiled.

#ifndef XTENSOR_USE_XSIMD
#define XTENSOR_USE_XSIMD  // expressions are evaluated in xsimd's batches
#endif
#if __has_include(<xtensor/containers/xadapt.hpp>)  // the layout of folders since xtensor 0.26
#include <xtensor/containers/xadapt.hpp>
#include <xtensor/containers/xarray.hpp>
#include <xtensor/containers/xtensor.hpp>
#include <xtensor/core/xfunction.hpp>
#include <xtensor/core/xmath.hpp>
#include <xtensor/core/xnoalias.hpp>
#include <xtensor/views/xview.hpp>
#else
#include <xtensor/xadapt.hpp>
#include <xtensor/xarray.hpp>
#include <xtensor/xfunction.hpp>
#include <xtensor/xmath.hpp>
#include <xtensor/xnoalias.hpp>
#include <xtensor/xtensor.hpp>
#include <xtensor/xview.hpp>
#endif
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "autograd/error.hpp"
#include "autograd/tensor.hpp"

namespace heed {

namespace detail {

template <class X>
Shape shape_for(X const& x) {
  Shape shape;
  for (auto const extent : x.shape()) shape.append(static_cast<Index>(extent));
  return shape;
}

/// `tensor`'s elements, at `data`, as a container of its shape.
template <class T>
auto adapted(T* data, Tensor const& tensor) {
  std::vector<std::size_t> const extents(tensor.shape().begin(), tensor.shape().end());
  return xt::adapt(data, static_cast<std::size_t>(tensor.elements()), xt::no_ownership(), extents);
}

template <class X>
Tensor at_elements_of(X const& x, std::shared_ptr<void> owner) {
  using T = std::remove_cv_t<typename X::value_type>;
  Index step = 1;
  for (std::size_t axis = x.dimension(); axis-- > 0;) {
    auto const extent = static_cast<Index>(x.shape()[axis]);
    if (extent > 1 && static_cast<Index>(x.strides()[axis]) != step)
      throw Error("xtensor: the array is not contiguous in row-major order: " + to_string(shape_for(x)) + " with stride " +
                  std::to_string(x.strides()[axis]) + " in axis " + std::to_string(axis) + " (copy_xtensor() takes any)");
    step *= extent;
  }
  auto* const first = const_cast<T*>(x.data() + x.data_offset());
  return Tensor::at_memory(first, shape_for(x), dtype_of<T>(), std::move(owner));
}

}  // namespace detail

/// A container (xt::xarray or xt::xtensor of float, double or Index) as a Tensor, which owns it: no copy. Throws Error if not row-major.
template <class X>
requires(!std::is_lvalue_reference_v<X>) Tensor from_xtensor(X&& array) {
  auto const owner = std::make_shared<X>(std::move(array));
  return detail::at_elements_of(*owner, owner);
}

/// A container's or a view's array as a Tensor: no copy. The array must stay alive and unchanged while a tensor or graph made from it
/// exists; heed writes to it only through mutable_data(). Throws Error for a view that is not contiguous in row-major order.
template <class X>
Tensor borrow_xtensor(X const& array) {
  return detail::at_elements_of(array, nullptr);
}
// A temporary container: use from_xtensor().
template <class EC, xt::layout_type L, class SC, class Tag>
Tensor borrow_xtensor(xt::xarray_container<EC, L, SC, Tag>&& array) = delete;
template <class EC, std::size_t N, xt::layout_type L, class Tag>
Tensor borrow_xtensor(xt::xtensor_container<EC, N, L, Tag>&& array) = delete;

/// Any expression, strided view or broadcast, evaluated into a new Tensor.
template <class X>
Tensor copy_xtensor(X const& expression) {
  using T = std::remove_cv_t<typename X::value_type>;
  Tensor result(detail::shape_for(expression), dtype_of<T>());
  auto target = detail::adapted(result.mutable_data<T>().data(), result);
  xt::noalias(target) = expression;
  return result;
}

/// A tensor's array as a non-owning xtensor container of its shape: no copy, valid while a tensor shares the array; given a Tensor&, it is
/// writable. Throws Error if T is not the dtype.
template <class T>
auto as_xtensor(Tensor const& tensor) {
  return detail::adapted(tensor.data<T>().data(), tensor);
}
template <class T>
auto as_xtensor(Tensor& tensor) {
  return detail::adapted(tensor.mutable_data<T>().data(), tensor);
}
template <class T>
auto as_xtensor(Tensor&& tensor) = delete;  // the array would be gone at once

}  // namespace heed
