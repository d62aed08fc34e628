#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autograd/error.hpp"
#include "autograd/registry.hpp"
#include "experiments/commands/inspect.hpp"
#include "experiments/metric/probe/attention_maps.hpp"

namespace heed {

/// A run's model and its input for `heed inspect`.
struct Inspected {
  /// `path`: the run's.
  Inspected(std::filesystem::path path, TrainedModel run);
  virtual ~Inspected() = default;

  /// Builds the batch from the options. Throws ConfigError for an input that the model cannot read.
  virtual void show(InspectOptions const& options) = 0;
  /// Whether inputs are held-out rows of its data, numbered by --row.
  virtual bool by_rows() const { return false; }
  /// Attention to a picture: draws it to --picture and returns it as text; "" if attention is shown as tables per layer and head.
  virtual std::string page(InspectOptions const& options, AttentionMaps const& attention) const;

  std::filesystem::path path;
  TrainedModel run;
  PartTokenizers tokenizers;
  Batch batch;
  std::optional<std::string> written;  ///< the model's own output: a target, or its answer
  std::optional<std::string> asked;    ///< the picture's reference caption

 protected:
  /// A text as tokens; `mask_text` in it becomes the model's mask token, if it has one. Throws ConfigError.
  std::vector<Index> encoded(std::string_view text) const;
  /// Parses token ids of a part of the data. Throws ConfigError about the argument.
  std::vector<Index> numbers(std::string const& text, char const* argument, char const* part) const;
  /// Throws ConfigError for more tokens than maps are made for (memory grows with the square), unless the model was trained on that many.
  void check_length(char const* argument, std::size_t tokens) const;
  /// Tokens as a batch of one sequence.
  static Tensor row_of(std::vector<Index> const& tokens);
  /// Returns f(); an Error from it is reported as one of the argument.
  template <class F>
  static auto checked(char const* argument, F const& f) try {
    return f();
  } catch (Error const& error) {
    throw ConfigError(argument, error.what());
  }
};

/// How models of one sort are given an input, declared beside its definition. The first that accepts a run is used.
struct Inspection {
  int order;  ///< among the others
  std::function<bool(TrainedModel const&)> takes;
  std::function<std::unique_ptr<Inspected>(std::filesystem::path, TrainedModel)> make;
};
/// `Declared<Inspection> const text_inspection{inspection_by<Text>(4, takes)};`
template <class T>
Inspection inspection_by(int order, std::function<bool(TrainedModel const&)> takes) {
  return {order, std::move(takes),
          [](std::filesystem::path path, TrainedModel run) { return std::make_unique<T>(std::move(path), std::move(run)); }};
}

}  // namespace heed
