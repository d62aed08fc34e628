#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/index.hpp"

namespace heed {

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

}  // namespace heed
