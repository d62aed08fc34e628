#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autograd/error.hpp"
#include "autograd/registry.hpp"
#include "experiments/metric/probe/attention_maps.hpp"
#include "experiments/program/failure.hpp"
#include "experiments/program/run_options.hpp"
#include "experiments/train/experiment.hpp"
#include "nn/decode.hpp"

namespace heed {

struct InspectOptions : ChosenRun {
  std::string text;  ///< token ids for a model of data without text; "[MASK]" is a masked model's mask token
  /// For a model with a source or a picture; default: its own output. For labelled examples: the second text.
  std::optional<std::string> target;
  std::optional<Index> row;                              ///< for a model of pictures: which held-out picture, from 1
  BeamSettings beam{.width = 1, .length_penalty = 0.6};  ///< search for the model's own output
  std::filesystem::path picture;                         ///< .svg, .pdf, .png or .html showing the maps; empty: none
  std::optional<std::pair<Index, Index>> head;           ///< the only one on the picture: layer and head
  bool heads = false;                                    ///< the loss without each head, instead of maps
  std::optional<std::string> from;                       ///< with each head's outputs from this text: likewise
  std::filesystem::path save;                            ///< empty: attention.npz in the run's folder
  std::size_t width = 0;                                 ///< columns of the terminal; 0: unlimited
  bool printable = false;                                ///< for a terminal: control characters are shown as U+FFFD
  bool quiet = false;                                    ///< no table
};

/// Attention weights of a trained model for a text or for a picture of its data: a table for every layer and head on `out`, and an .npz
/// file with the arrays of AttentionMaps. Throws ConfigError for a text that the model cannot read and if there is no such run, FileError
/// for a damaged run, Error for a file that cannot be written.
Exit inspect(InspectOptions const& options, std::ostream& out);

/// Weights [n, m] as text, in hundredths, keys across and queries down; "·" for a weight of exactly 0. Keys that exceed `width` columns (0:
/// unlimited) continue below, with the queries repeated.
std::string attention_table(Tensor const& weights, std::vector<std::string> const& queries, std::vector<std::string> const& keys,
                            std::size_t width);

/// A run's model and its input for `heed inspect`.
struct Inspected {
  explicit Inspected(TrainedModel run);
  virtual ~Inspected() = default;

  /// Builds the batch from the options. Throws ConfigError for an input that the model cannot read.
  virtual void show(InspectOptions const& options) = 0;
  /// Whether inputs are held-out rows of its data, numbered by --row.
  virtual bool by_rows() const { return false; }
  /// Draws the maps to --picture, if asked for. Returns those of a picture as text; "": they are shown as tables per layer and head.
  virtual std::string page(InspectOptions const& options, AttentionMaps const& attention) const;

  /// A text, or token ids, as a batch of one sequence. Throws ConfigError about the argument.
  Tensor tokens_of(std::string const& text, char const* argument) const;

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

/// The change of a Transformer's loss on a text, the mean cross entropy of each next token, without each of its heads (Michel et al. 2019),
/// or with their outputs from another text of as many tokens (activation patching: Vig et al. 2020): by layer and head, a table on `out`
/// and, for options.picture, a heat map. Throws ConfigError for a model that predicts no next token, and for texts of one token or other
/// lengths.
void head_effects(Inspected const& subject, InspectOptions const& options, std::ostream& out);

/// How models of one sort are given an input, declared beside its definition. The first that accepts a run is used.
struct Inspection {
  int order;  ///< among the others
  std::function<bool(TrainedModel const&)> takes;
  std::function<std::unique_ptr<Inspected>(TrainedModel)> make;
};
/// `Declared<Inspection> const text_inspection{inspection_by<Text>(4, takes)};`
template <class T>
Inspection inspection_by(int order, std::function<bool(TrainedModel const&)> takes) {
  return {order, std::move(takes), [](TrainedModel run) { return std::make_unique<T>(std::move(run)); }};
}

}  // namespace heed
