#include "autograd/tensor.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "autograd/kernels/dispatch.hpp"
#include "autograd/parallel.hpp"
#include "autograd/random.hpp"

namespace heed {

namespace {

/// A new tensor, filled by fill(out, begin, end) for stretches of its elements, on the pool.
template <class Fill>
Tensor filled(Shape const& shape, DType dtype, double cost, Fill const& fill) {
  Tensor result(shape, dtype);
  kernels::with_any(dtype, [&]<class T>(T) {
    T* const out = result.mutable_data<T>().data();
    parallel_for(result.elements(), cost, [&](Index begin, Index end) { fill(out, begin, end); });
  });
  return result;
}

/// A tensor whose element i is f(i).
template <class F>
Tensor generated(Shape const& shape, DType dtype, F const& f) {
  return filled(shape, dtype, 1, [&]<class T>(T* out, Index begin, Index end) {
    for (Index i = begin; i < end; ++i) out[i] = static_cast<T>(f(i));
  });
}

void check_count(std::size_t values, Shape const& shape) {
  if (static_cast<Index>(values) != shape.elements())
    throw Error(fmt::format("tensor: {} values do not fill the shape {}", values, to_string(shape)));
}

/// The number of a type at u in [0, 1) of [low, high): rounding neither reaches `high` nor falls below `low`.
template <class T>
auto number_between(double low, double high) {
  [[maybe_unused]] T first = static_cast<T>(low), last = static_cast<T>(high);
  if constexpr (std::is_floating_point_v<T>) {
    if (static_cast<double>(first) < low) first = std::nextafter(first, std::numeric_limits<T>::infinity());
    if (static_cast<double>(last) >= high) last = std::nextafter(last, -std::numeric_limits<T>::infinity());
    last = std::max(first, last);
  }
  return [=](double u) {
    double const width = high - low, x = std::isfinite(width) ? low + width * u : low * (1 - u) + high * u;
    if constexpr (std::is_floating_point_v<T>)
      return std::clamp(static_cast<T>(x), first, last);
    else
      return static_cast<T>(x);
  };
}

}  // namespace

std::size_t bytes_of(DType dtype) { return dtype == DType::float32 ? 4 : 8; }

std::string to_string(DType dtype) {
  static constexpr std::array names{"float32", "float64", "int64"};
  return at(names, dtype);
}

Tensor::Tensor(Shape const& shape, DType dtype)
    : shape_(shape), dtype_(dtype), buffer_(static_cast<std::size_t>(shape.elements()) * bytes_of(dtype)), data_(buffer_.data()) {}

Tensor Tensor::of_shape(Shape const& shape, DType dtype) {
  Tensor result;
  result.shape_ = shape;
  result.dtype_ = dtype;
  return result;
}

Tensor Tensor::at_memory(void* data, Shape const& shape, DType dtype, std::shared_ptr<void> owner) {
  if (data == nullptr && shape.elements() > 0)
    throw Error(fmt::format("tensor: no memory is given for the elements of {}", to_string(shape)));
  Tensor result = of_shape(shape, dtype);
  result.buffer_ = Buffer(std::move(owner));
  result.data_ = data != nullptr ? static_cast<std::byte*>(data) : result.buffer_.data();
  return result;
}

Tensor Tensor::full(Shape const& shape, double value, DType dtype) {
  Tensor result(shape, dtype);
  kernels::with_any(dtype,
                    [&](auto type) { std::ranges::fill(result.mutable_data<decltype(type)>(), static_cast<decltype(type)>(value)); });
  return result;
}

Tensor Tensor::arange(Index n, DType dtype) {
  return generated({n}, dtype, [](Index i) { return i; });
}

Tensor Tensor::of(std::vector<double> const& values, Shape const& shape, DType dtype) {
  check_count(values.size(), shape);
  return generated(shape, dtype, [&](Index i) { return heed::at(values, i); });
}

Tensor Tensor::of(std::vector<Index> const& values, Shape const& shape) {
  check_count(values.size(), shape);
  Tensor result(shape, DType::int64);
  std::ranges::copy(values, result.mutable_data<std::int64_t>().begin());
  return result;
}

Tensor Tensor::normal(Shape const& shape, Stream const& stream, DType dtype) {
  return filled(shape, dtype, 5, [&]<class T>(T* out, Index begin, Index end) {
    std::array<double, 256> some;
    for (auto i = begin; i < end; i += static_cast<Index>(some.size())) {
      std::span const values(some.data(), std::min(some.size(), static_cast<std::size_t>(end - i)));
      stream.normals(static_cast<std::uint64_t>(i), values);
      std::ranges::transform(values, out + i, [](double value) { return static_cast<T>(value); });
    }
  });
}

Tensor Tensor::uniform(Shape const& shape, Stream const& stream, DType dtype, double low, double high) {
  if (!(low <= high)) throw Error(fmt::format("uniform: the lower end {} is above the upper end {}", low, high));
  return filled(shape, dtype, 15, [&]<class T>(T* out, Index begin, Index end) {
    auto const number = number_between<T>(low, high);
    for (Index i = begin; i < end; ++i) out[i] = number(stream.uniform(static_cast<std::uint64_t>(i)));
  });
}

template <class T>
std::span<T const> Tensor::data() const {
  if (data_ == nullptr)
    throw Error(fmt::format("tensor: the elements of {} are not there (undefined, or freed by backward)", to_string(shape_)));
  if (dtype_ != dtype_of<T>())
    throw Error(fmt::format("tensor: {} elements asked of a {} tensor {}", to_string(dtype_of<T>()), to_string(dtype_), to_string(shape_)));
  return {reinterpret_cast<T const*>(data_), static_cast<std::size_t>(elements())};
}

template <class T>
std::span<T> Tensor::mutable_data() {
  auto const elements = data<T>();
  buffer_.count_write();
  return {const_cast<T*>(elements.data()), elements.size()};
}

template std::span<float const> Tensor::data() const;
template std::span<double const> Tensor::data() const;
template std::span<Index const> Tensor::data() const;
template std::span<float> Tensor::mutable_data();
template std::span<double> Tensor::mutable_data();
template std::span<Index> Tensor::mutable_data();

double Tensor::at(Index index) const {
  if (index < 0 || index >= elements()) throw Error(fmt::format("tensor: element {} of a tensor {}", index, to_string(shape_)));
  return kernels::with_any(dtype_, [&](auto type) { return static_cast<double>(heed::at(data<decltype(type)>(), index)); });
}

double Tensor::item() const {
  if (elements() != 1) throw Error(fmt::format("item: a tensor {} is not a single element", to_string(shape_)));
  return at(0);
}

std::vector<double> Tensor::to_vector() const {
  return kernels::with_any(dtype_, [&](auto type) {
    auto const elements = data<decltype(type)>();
    return std::vector<double>(elements.begin(), elements.end());
  });
}

Tensor Tensor::detach() const {
  Tensor result = *this;
  result.node_ = nullptr;
  return result;
}

Tensor Tensor::converted(DType dtype) const {
  Tensor result(shape_, dtype);
  kernels::with_any(dtype_, [&](auto source) {
    kernels::with_any(dtype, [&](auto target) {
      std::ranges::transform(data<decltype(source)>(), result.mutable_data<decltype(target)>().begin(),
                             [](auto x) { return static_cast<decltype(target)>(x); });
    });
  });
  return result;
}

Tensor Tensor::clone() const {
  Tensor result(shape_, dtype_);
  copy_elements(*this, result);
  return result;
}

Tensor Tensor::viewed(Shape const& shape) const {
  if (shape.elements() != elements()) throw Error(fmt::format("reshape: {} elements do not fit {}", to_string(shape_), to_string(shape)));
  Tensor result = detach();
  result.shape_ = shape;
  return result;
}

Tensor Tensor::rows(Index first, Index count) const {
  if (rank() == 0 || first < 0 || count < 0 || first + count > size(0))
    throw Error(fmt::format("rows: {} rows from {} of a tensor {}", count, first, to_string(shape_)));
  Tensor result = detach();
  result.shape_.set(0, count);
  Index const row = count == 0 ? 0 : result.elements() / count;
  result.data_ += static_cast<std::size_t>(first * row) * bytes_of(dtype_);
  return result;
}

Tensor Tensor::hollow() const {
  Tensor result = of_shape(shape_, dtype_);  // not a copy of this one: that would count its array's references up and down
  result.node_ = node_;
  return result;
}

std::span<std::byte const> bytes_in(Tensor const& tensor) {
  return kernels::with_any(tensor.dtype(), [&](auto type) { return std::as_bytes(tensor.data<decltype(type)>()); });
}

std::span<std::byte> writable_bytes_in(Tensor tensor) {
  return kernels::with_any(tensor.dtype(), [&](auto type) { return std::as_writable_bytes(tensor.mutable_data<decltype(type)>()); });
}

void copy_elements(Tensor const& from, Tensor& to) {
  kernels::with_any(to.dtype(),
                    [&](auto type) { std::ranges::copy(from.data<decltype(type)>(), to.mutable_data<decltype(type)>().begin()); });
}

bool same_bits(Tensor const& a, Tensor const& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && std::ranges::equal(bytes_in(a), bytes_in(b));
}

}  // namespace heed
