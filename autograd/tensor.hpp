#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "autograd/memory.hpp"
#include "autograd/shape.hpp"

namespace heed {

/// Element types, chosen at run time: real numbers in two precisions, and integers for tokens and indices.
enum class DType : std::uint8_t { float32, float64, int64 };

std::size_t bytes_of(DType dtype);
/// "float32", "float64", "int64".
std::string to_string(DType dtype);

/// The DType of a C++ type.
template <class T>
constexpr DType dtype_of() {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, Index>, "a Tensor holds float, double or Index");
  return std::is_same_v<T, float> ? DType::float32 : std::is_same_v<T, double> ? DType::float64 : DType::int64;
}

class Node;
class Stream;

/// A handle to a contiguous row-major array and, if it needs a gradient, to its node in the graph. Copies share both; operations
/// (autograd/ops) never change their inputs. Not a template: the element type is dtype().
class Tensor {
 public:
  /// Undefined: no array. Everything but defined() throws.
  Tensor() = default;
  /// A new array of unspecified content.
  Tensor(Shape const& shape, DType dtype);

  static Tensor full(Shape const& shape, double value, DType dtype);
  static Tensor zeros(Shape const& shape, DType dtype) { return full(shape, 0, dtype); }
  static Tensor ones(Shape const& shape, DType dtype) { return full(shape, 1, dtype); }
  /// A shape and a dtype without elements, for estimating memory.
  static Tensor of_shape(Shape const& shape, DType dtype);
  /// The elements at `data`, in row-major order, without a copy. `owner` is kept alive while a tensor shares them; it may be empty if the
  /// caller keeps them alive (autograd/xtensor.hpp). Operations never write to them.
  static Tensor at_memory(void* data, Shape const& shape, DType dtype, std::shared_ptr<void> owner);
  /// A scalar [].
  static Tensor scalar(double value, DType dtype) { return full({}, value, dtype); }
  /// 0, 1, … n−1.
  static Tensor arange(Index n, DType dtype);
  /// Values in row-major order. Throws Error if their number is not the shape's.
  static Tensor of(std::vector<double> const& values, Shape const& shape, DType dtype = DType::float64);
  static Tensor of(std::vector<Index> const& values, Shape const& shape);
  /// Element i is draw i of the stream: standard normal, or uniform in [low, high). The same numbers in either precision.
  static Tensor normal(Shape const& shape, Stream const& stream, DType dtype);
  static Tensor uniform(Shape const& shape, Stream const& stream, DType dtype, double low = 0, double high = 1);

  bool defined() const { return data_ != nullptr; }
  Shape const& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  std::size_t rank() const { return shape_.rank(); }
  Index size(Index axis) const { return shape_[axis]; }
  Index elements() const { return shape_.elements(); }

  /// The elements; T is float, double or Index. Throws Error if that is not the dtype.
  template <class T>
  std::span<T const> data() const;
  /// Writable elements, for code that fills or updates an array outside the graph (initialisation, optimizers, kernels). A later backward
  /// pass that needs the old values throws Error.
  template <class T>
  std::span<T> mutable_data();
  /// The single element of a tensor of one, as a double. Throws Error for any other size.
  double item() const;
  /// Element at a row-major position, as a double.
  double at(Index index) const;
  std::vector<double> to_vector() const;

  /// A copy in another dtype (truncating to integers); the tensor itself if it has that dtype. Gradients pass through.
  Tensor to(DType dtype) const;
  /// The same, without a node.
  Tensor converted(DType dtype) const;
  /// The same array without a node: a constant to the graph.
  Tensor detach() const;
  /// A copy of the array, without a node.
  Tensor clone() const;
  /// The same array in another shape with as many elements, without a node (the operation is reshape()).
  Tensor viewed(Shape const& shape) const;
  /// Rows [first, first + count) of the outermost axis; shares the array, without a node (the operation is slice()).
  Tensor rows(Index first, Index count) const;

  bool requires_grad() const { return node_ != nullptr && !frozen(); }
  /// Makes this a leaf of the graph (a parameter) or a constant. Throws Error for integers.
  Tensor& set_requires_grad(bool wanted = true);
  /// A frozen leaf is a constant to every operation, through every handle: nothing is recorded for it and no gradient computed. Clears its
  /// gradient. Throws Error if this is not a leaf.
  void set_frozen(bool frozen = true);
  bool frozen() const;
  /// The gradient that backward() has accumulated in this leaf; undefined before. The leaf's own array, which nothing else shares: later
  /// passes add to it, or to a copy if this handle is still there.
  Tensor grad() const;
  /// Replaces the accumulated gradient, by a copy unless the tensor is moved in and shares its array with nothing; an undefined tensor
  /// clears it. Throws Error unless it has this tensor's shape and dtype.
  void set_grad(Tensor gradient);
  void clear_grad() { set_grad({}); }
  /// Calls `hook` with this tensor's total gradient during a backward pass; a defined result replaces the gradient.
  void on_gradient(std::function<Tensor(Tensor const&)> hook);

  /// Accumulates d(this)/d(leaf) in the grad() of every leaf. See backward() in autograd/graph.hpp.
  void backward() const;

  // Internal to the engine.
  /// Shape, dtype and node without the array: what a rule keeps of an input whose values it does not need.
  Tensor hollow() const;
  std::shared_ptr<Node> const& node() const { return node_; }
  void set_node(std::shared_ptr<Node> node) { node_ = std::move(node); }
  bool sole_owner() const { return buffer_.sole_owner(); }
  /// Copies the array, and drops the node, if anything else holds the array.
  Tensor& own() { return sole_owner() ? *this : *this = clone(); }
  bool shares_array_with(Tensor const& other) const { return data_ == other.data_; }
  /// From here on written_since() tells whether mutable_data() was called for this array, through any tensor that shares it.
  void watch() { writes_seen_ = buffer_.writes(); }
  bool written_since() const { return buffer_.writes() != writes_seen_; }

 private:
  Shape shape_;
  DType dtype_ = DType::float32;
  std::uint32_t writes_seen_ = 0;
  Buffer buffer_;
  std::byte* data_ = nullptr;
  std::shared_ptr<Node> node_;
};

/// The elements as they lie in memory, which the tensor owns.
std::span<std::byte const> bytes_in(Tensor const& tensor);
std::span<std::byte> writable_bytes_in(Tensor tensor);
/// Copies the elements into a tensor of the same shape and dtype.
void copy_elements(Tensor const& from, Tensor& to);
/// Whether two tensors have one type, one shape and the same bits.
bool same_bits(Tensor const& a, Tensor const& b);

}  // namespace heed
