#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/data/dataset.hpp"
#include "experiments/data/tokenizer.hpp"
#include "experiments/metric/probe/settings.hpp"
#include "nn/files/npz.hpp"
#include "nn/model.hpp"

namespace heed {

/// A token as something that can be seen: its text, with blanks and ends of lines as signs and bytes that are no character as \xE2; the
/// one after the vocabulary "[MASK]", the one that ends texts "<eos>". Its number where there is no tokenizer (null).
std::string token_label(Tokenizer const* tokenizer, std::int64_t token);
constexpr std::string_view mask_text = "[MASK]";

/// What made tokens of a batch's parts, as far as there is such a thing: of the source, and of all others.
struct PartTokenizers {
  std::shared_ptr<Tokenizer const> inputs, source = nullptr;
  std::vector<std::string> added = {std::string(mask_text)};  ///< what the tokens behind the vocabulary of the inputs are called

  Tokenizer const* operator[](std::string_view part) const { return part == "source" ? source.get() : inputs.get(); }
};

/// Where a model looked in a pass over a batch: the weights of its attention layers, and what stands on their axes.
struct AttentionMaps {
  struct LabelledPart {
    std::string name;
    Tensor tokens;                      ///< int64 [B, n]; undefined for a picture
    std::vector<std::string> labels;    ///< of each of them
    std::vector<std::int64_t> lengths;  ///< of the rows; what stands behind is padding; empty: there is no padding
    Tensor pixels = {};                 ///< of a picture, int64 [B, C, H, W]
  };
  std::vector<LabelledPart> parts;  ///< the inputs, if they are tokens, and all others that attend or are attended to: tokens and pictures
  std::vector<AttentionRecord> layers;  ///< their weights, in the order of the pass

  /// The labels of a row's places in a part, of `places` with the padding; their numbers where the part has no tokens.
  std::vector<std::string> axis(std::string_view part, std::int64_t row, std::int64_t places) const;
  /// Whether the inputs alone look, at themselves.
  bool only_inputs() const;
  /// As arrays for write_npz(), see experiments/README.md; `single`: of one row, without the rows' axis.
  std::vector<NpyArray> arrays(bool single = false) const;
};

/// Looks on while the model reads the batch; nothing is recorded. Of `pass` counts all but its observer.
AttentionMaps attention_maps(Model const& model, Batch const& batch, PartTokenizers const& tokenizers, Pass pass = {});

/// Attention maps over training: `attention/step-000500.npz` in a run's folder, with the arrays of AttentionMaps, of the first rows of
/// validation (without such data, of training).
class AttentionMapWriter {
 public:
  /// Of a run that goes on from `step`: later maps are of another future and are removed. Throws Error.
  AttentionMapWriter(MapSettings const& settings, Model const& model, Dataset const& data, std::filesystem::path const& run,
                     std::int64_t step);

  /// Whether the weights after so many updates are to be shown.
  bool due(std::int64_t step, bool last) const { return settings_.examples > 0 && (last || step % settings_.every == 0); }
  /// Throws Error if the file cannot be written; it appears whole or not at all.
  void write(std::int64_t step) const;
  /// What write() has left, in the run's folder: "attention/step-000500.npz", in order.
  std::vector<std::string> files() const;

 private:
  MapSettings const& settings_;
  Model const& model_;
  Dataset const& data_;
  std::filesystem::path folder_;
};

}  // namespace heed
