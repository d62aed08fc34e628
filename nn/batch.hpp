#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autograd/index.hpp"
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

/// A part of a batch, as the data declare it.
struct PartSpec {
  std::string name;
  Index classes = 0;                    ///< values are 0 … classes − 1
  std::string vocabulary = {};          ///< parts with the same vocabulary share tokens; "" is that of inputs
  Index longest = 0;                    ///< length of the longest sequence; 0: the context
  Index max_tokens = 0;                 ///< most positions of a training batch (sequences times the longest); 0: given by the batch size
  std::vector<std::string> added = {};  ///< names of the last classes, tokens that do not occur in text: "[MASK]"
  std::string made_by = {};             ///< the view that makes it; "": the data themselves
  std::vector<Index> shape = {};        ///< of a picture: channels, height, width; empty: a sequence
  Index sequences = 1;                  ///< sequences per row: options of a multiple choice, orders of a pair
  std::vector<double> weights = {};     ///< of the classes in the loss; empty: all are 1

  /// The id of an added token. Throws Error for an unknown name.
  Index token(std::string_view name) const;
  bool operator==(PartSpec const&) const = default;
};

/// The parts of a data set's batches, for which a model is made. Lengths are not listed; they accompany their parts.
class Signature {
 public:
  Signature() = default;
  Signature(std::initializer_list<PartSpec> parts) : parts_(parts) {}
  explicit Signature(std::vector<PartSpec> parts) : parts_(std::move(parts)) {}
  /// Tokens and targets of one vocabulary.
  static Signature tokens(Index vocabulary) {
    return {{.name = "inputs", .classes = vocabulary}, {.name = "targets", .classes = vocabulary}};
  }

  bool has(std::string_view name) const;
  /// Throws Error that lists the parts for an unknown name.
  PartSpec const& operator[](std::string_view name) const;
  /// Adds or replaces a part.
  void set(PartSpec part);
  void remove(std::string_view name);
  std::vector<PartSpec> const& parts() const { return parts_; }
  /// "inputs, targets"
  std::string names() const;
  bool operator==(Signature const&) const = default;

  /// As JSON, to be saved with a trained model.
  std::string text() const;
  /// Parses text()'s output. Throws FileError that begins with `what` for anything else.
  static Signature parse(std::string_view text, std::string const& what);

 private:
  std::vector<PartSpec> parts_;
};

/// The part that targets are generated from: a text, "source", or a picture, "image"; "" if there is neither. For a batch or a signature.
template <class Parts>
std::string written_of(Parts const& parts) {
  return parts.has("source") ? "source" : parts.has("image") ? "image" : "";
}

}  // namespace heed
