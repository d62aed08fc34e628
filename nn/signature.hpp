#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// A part of a batch, as data promise it.
struct PartSpec {
  std::string name;
  std::int64_t classes = 0;              ///< its numbers are 0 … classes − 1
  std::string vocabulary = {};           ///< parts of one vocabulary have tokens in common; "" is that of inputs
  std::int64_t longest = 0;              ///< places of its longest row; 0: as many as the context
  std::int64_t places = 0;               ///< of a training batch at most, its rows times the longest; 0: as many rows as are asked for
  std::vector<std::string> added = {};   ///< the names of the last of its classes, tokens that no text has: "[MASK]"
  std::string made_by = {};              ///< the view that makes it; "": the data's own
  std::vector<std::int64_t> shape = {};  ///< of a row that is a picture: channels, height, width; empty: a row is a sequence
  std::int64_t sequences = 1;            ///< of a row: options of a multiple choice, orders of a pair

  /// The number of an added token. Throws Error if there is none of this name.
  std::int64_t token(std::string_view name) const;
  bool operator==(PartSpec const&) const = default;
};

/// What a data set's batches hold: what a model is made for. Lengths are not told here; they come with what they belong to.
class Signature {
 public:
  Signature() = default;
  Signature(std::initializer_list<PartSpec> parts) : parts_(parts) {}
  explicit Signature(std::vector<PartSpec> parts) : parts_(std::move(parts)) {}
  /// Rows of tokens and their targets, of one vocabulary.
  static Signature tokens(std::int64_t vocabulary) {
    return {{.name = "inputs", .classes = vocabulary}, {.name = "targets", .classes = vocabulary}};
  }

  bool has(std::string_view name) const;
  /// Throws Error that says what there is.
  PartSpec const& operator[](std::string_view name) const;
  /// Adds a part, or replaces it.
  void set(PartSpec part);
  void remove(std::string_view name);
  std::vector<PartSpec> const& parts() const { return parts_; }
  /// "inputs, targets"
  std::string names() const;
  bool operator==(Signature const&) const = default;

  /// As JSON, to be kept with a trained model.
  std::string text() const;
  /// Throws FileError that begins with `what` for another text than text() makes.
  static Signature parse(std::string_view text, std::string const& what);

 private:
  std::vector<PartSpec> parts_;
};

}  // namespace heed
