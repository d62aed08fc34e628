#pragma once

#include <cstdint>
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

/// A run's model, and what it is shown.
struct Inspected {
  /// `path`: of the run.
  Inspected(std::filesystem::path path, TrainedModel run);
  virtual ~Inspected() = default;

  /// Makes the batch of what the command line says. Throws ConfigError for what the model cannot read.
  virtual void show(InspectOptions const& options) = 0;
  /// Whether it is shown held-out rows of its data, which --row numbers.
  virtual bool by_rows() const { return false; }
  /// Where it image, where that is no table for every layer and head: drawn where --picture says, and as text; "": it is such tables.
  virtual std::string page(InspectOptions const& options, AttentionMaps const& attention) const;

  std::filesystem::path path;
  TrainedModel run;
  PartTokenizers tokenizers;
  Batch batch;
  std::optional<std::string> written;  ///< a target of the model's own, or its answer
  std::optional<std::string> asked;    ///< what a picture's caption should be

 protected:
  /// A text as tokens; `mask_text` in it is the token of this name, of a model that has one. Throws ConfigError.
  std::vector<std::int64_t> encoded(std::string_view text) const;
  /// Numbers of tokens that a part of the data has. Throws ConfigError about the argument.
  std::vector<std::int64_t> numbers(std::string const& text, char const* argument, char const* part) const;
  /// Throws ConfigError for more tokens than maps are made of, whose memory grows with the square, unless the model is trained on so many.
  void check_length(char const* argument, std::size_t tokens) const;
  /// Tokens as a batch of one row.
  static Tensor row_of(std::vector<std::int64_t> const& tokens);
  /// What f gives; an Error that it throws is of the argument.
  template <class F>
  static auto checked(char const* argument, F const& f) try {
    return f();
  } catch (Error const& error) {
    throw ConfigError(argument, error.what());
  }
};

/// How models of some sort are shown something, declared beside its definition. The first that takes a run is its own.
struct Inspection {
  int place;  ///< among the others
  std::function<bool(TrainedModel const&)> takes;
  std::function<std::unique_ptr<Inspected>(std::filesystem::path, TrainedModel)> make;

  int order() const { return place; }
};
/// `Declared<Inspection> const declared{inspection_by<Text>(4, takes)};`
template <class T>
Inspection inspection_by(int place, std::function<bool(TrainedModel const&)> takes) {
  return {place, std::move(takes),
          [](std::filesystem::path path, TrainedModel run) { return std::make_unique<T>(std::move(path), std::move(run)); }};
}

}  // namespace heed
