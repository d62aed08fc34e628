#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autograd/tensor.hpp"

namespace heed {

/// The rows x[i, …] of these numbers, in this order; a row may be named more than once.
Tensor take(Tensor const& x, std::span<std::int64_t const> rows);
/// The same of a list.
template <class T>
std::vector<T> take(std::vector<T> const& list, std::span<std::int64_t const> rows) {
  std::vector<T> taken;
  for (std::int64_t const row : rows) taken.push_back(list.at(static_cast<std::size_t>(row)));
  return taken;
}

/// What one step of training or evaluation sees: tensors by name, whose first axis is the row. Which there are is the data's affair, which
/// are read the model's. Names that several systems share:
///
///   inputs          int64 [B, T]  tokens that are read
///   targets         int64 [B, T]  what is to be predicted at their places; −1 does not count
///   lengths         int64 [B]     the tokens of each row; what stands behind them is padding; absent: all T
///   source          int64 [B, S]  what an encoder reads
///   source_lengths  int64 [B]     as lengths
///   image           int64 [B, C, H, W]  a picture that an encoder sees: channels of pixels, row by row, from the top
///   next            int64 [B, T]  the token that follows each of inputs; −1 where there is none
///   groups          int64 [B, T]  of validation data: the group that a target's accuracy is told for; −1: none
class Batch {
 public:
  using BatchPart = std::pair<std::string, Tensor>;

  Batch() = default;
  /// Tensors that are undefined are left out.
  Batch(std::initializer_list<BatchPart> parts);

  bool has(std::string_view name) const { return find(name) != nullptr; }
  /// Throws Error that says what there is.
  Tensor const& operator[](std::string_view name) const;
  Tensor& operator[](std::string_view name) { return const_cast<Tensor&>(std::as_const(*this)[name]); }
  /// Undefined if there is none.
  Tensor get(std::string_view name) const;
  /// Adds a part, or replaces it; an undefined tensor removes it.
  void set(std::string_view name, Tensor value);

  /// The first rows of every part; all, if there are no more.
  Batch first(std::int64_t rows) const;
  /// The rows of these numbers, of every part, in this order; a row may be named more than once.
  Batch chosen(std::span<std::int64_t const> rows) const;

  std::vector<BatchPart> const& parts() const { return parts_; }
  /// Of every part; 0 if there is none.
  std::int64_t rows() const { return parts_.empty() ? 0 : parts_.front().second.size(0); }

 private:
  Tensor const* find(std::string_view name) const;

  std::vector<BatchPart> parts_;
};

/// The part that a target is written of: a text, "source", or a picture, "image"; "" if there is neither. Of a batch or a signature.
template <class Parts>
std::string written_of(Parts const& parts) {
  return parts.has("source") ? "source" : parts.has("image") ? "image" : "";
}

}  // namespace heed
