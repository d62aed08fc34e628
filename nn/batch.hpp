#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autograd/tensor.hpp"

namespace heed {

/// The elements of a list at these indices, as take() of a tensor.
template <class T>
std::vector<T> take(std::vector<T> const& list, std::span<Index const> rows) {
  return mapped(rows, [&](Index row) { return list.at(static_cast<std::size_t>(row)); });
}

/// The data of one step of training or evaluation: tensors by name, whose first axis is the batch. The data decide which there are, the
/// model which it reads. Names that several kinds share:
///
///   inputs          int64 [B, T]  tokens that are read
///   targets         int64 [B, T]  targets at these positions; −1 does not count
///   lengths         int64 [B]     number of tokens of each sequence, the rest is padding; absent: all T
///   source          int64 [B, S]  the encoder's tokens
///   source_lengths  int64 [B]     as lengths
///   image           int64 [B, C, H, W]  the encoder's picture: channels of pixels, row by row, from the top
///   next            int64 [B, T]  the token that follows each of inputs; −1 where there is none
///   groups          int64 [B, T]  in validation data: the group whose accuracy a target counts towards; −1: none
class Batch {
 public:
  using BatchPart = std::pair<std::string, Tensor>;

  Batch() = default;
  /// Skips undefined tensors.
  Batch(std::initializer_list<BatchPart> parts);

  bool has(std::string_view name) const { return find(name) != nullptr; }
  /// Throws Error that lists the parts if there is none of this name.
  Tensor const& operator[](std::string_view name) const;
  Tensor& operator[](std::string_view name) { return const_cast<Tensor&>(std::as_const(*this)[name]); }
  /// Undefined if absent.
  Tensor get(std::string_view name) const;
  /// Adds or replaces a part; an undefined tensor removes it.
  void set(std::string_view name, Tensor value);

  /// The first rows of every part; all rows if there are no more.
  Batch first(Index rows) const;
  /// These rows of every part, in this order; indices may repeat.
  Batch chosen(std::span<Index const> rows) const;

  std::vector<BatchPart> const& parts() const { return parts_; }
  /// The batch size; 0 without parts.
  Index rows() const { return parts_.empty() ? 0 : parts_.front().second.size(0); }

 private:
  Tensor const* find(std::string_view name) const;

  std::vector<BatchPart> parts_;
};

/// The part that targets are generated from: a text, "source", or a picture, "image"; "" if there is neither. For a batch or a signature.
template <class Parts>
std::string written_of(Parts const& parts) {
  return parts.has("source") ? "source" : parts.has("image") ? "image" : "";
}

}  // namespace heed
