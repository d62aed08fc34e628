#pragma once

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

/// The attention of a pass over the batch, as far as the options ask for it. Uses all of `pass` except its observer.
std::vector<AttentionRecord> recorded_attention(Model const& model, Batch const& batch, AttentionRecorder::RecorderOptions options,
                                                Pass pass = {});

/// A token as a label: its text, with visible signs for blanks and line ends and invalid bytes as \xE2; the token after the vocabulary as
/// "[MASK]", the one that ends texts as "<eos>". Its id if there is no tokenizer (null).
std::string token_label(Tokenizer const* tokenizer, Index token);
constexpr std::string_view mask_text = "[MASK]";

/// The tokenizers of a batch's parts, where there are any: for the source, and for all others.
struct PartTokenizers {
  std::shared_ptr<Tokenizer const> inputs, source = nullptr;
  std::vector<std::string> added = {std::string(mask_text)};  ///< names of the tokens after the vocabulary of the inputs

  Tokenizer const* operator[](std::string_view part) const { return part == "source" ? source.get() : inputs.get(); }
};

/// Attention in a pass over a batch: the weights of its layers, and labels for their axes.
struct AttentionMaps {
  struct LabelledPart {
    std::string name;
    Tensor tokens;                    ///< int64 [B, n]; undefined for a picture
    std::vector<std::string> labels;  ///< one per token
    std::vector<Index> lengths;       ///< of the sequences; the rest is padding; empty: no padding
    Tensor pixels = {};               ///< for a picture, int64 [B, C, H, W]
  };
  std::vector<LabelledPart> parts;      ///< the inputs, if they are tokens, and all other parts that attend or are attended to
  std::vector<AttentionRecord> layers;  ///< weights, in the order of the pass

  /// The labels of a sequence's positions in a part, `width` with padding; numbers if the part has no tokens.
  std::vector<std::string> axis(std::string_view part, Index row, Index width) const;
  /// Whether all attention is self-attention of the inputs.
  bool only_inputs() const;
  /// As arrays for write_npz(), see experiments/metrics.md; `single`: of one sequence, without the batch axis.
  std::vector<NpyArray> arrays(bool single = false) const;
};

/// Records the attention of a pass over the batch, without gradients. Uses all of `pass` except its observer.
AttentionMaps record_attention_maps(Model const& model, Batch const& batch, PartTokenizers const& tokenizers, Pass pass = {});

/// Attention maps during training: `attention/step-000500.npz` in a run's folder, with the arrays of AttentionMaps, for the first sequences
/// of validation (without such data, of training).
class AttentionMapWriter {
 public:
  /// For a run that resumes at `step`: removes maps of later steps. Throws Error.
  AttentionMapWriter(MapSettings const& settings, Model const& model, Dataset const& data, std::filesystem::path const& run, Index step);

  /// Whether maps are due after this many updates.
  bool due(Index step, bool last) const { return settings_.examples > 0 && (last || step % settings_.every == 0); }
  /// Throws Error if the file cannot be written; it appears complete or not at all.
  void write(Index step) const;
  /// The files written so far, relative to the run's folder: "attention/step-000500.npz", in order.
  std::vector<std::string> files() const;

 private:
  MapSettings const& settings_;
  Model const& model_;
  Dataset const& data_;
  std::filesystem::path folder_;
};

}  // namespace heed
