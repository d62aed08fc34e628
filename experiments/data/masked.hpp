#pragma once

#include <memory>
#include <optional>

#include "autograd/random.hpp"
#include "experiments/data/view.hpp"
#include "nn/masking.hpp"

namespace heed {

/// Masked language modelling (Devlin et al. 2019, section 3.1) over other data: each token is chosen with probability `share` (0.15); a
/// chosen one is replaced by [MASK] with probability `mask` (0.8), by a uniformly random token with probability `random` (0.1), and kept
/// otherwise. The targets are the original chosen tokens, −1 elsewhere. Padding, sentence ends and special tokens ([CLS], [SEP]) are never
/// chosen. A sequence without a chosen token gets one, as in the authors' program, so that in short sequences more than 15 % are chosen.
///
/// The choice depends on the seed and the sequence's number in training, on the number alone in validation; never on the rest of the batch.
/// [MASK] is the token after the last one of the other data.
class MaskedDataset : public View {
 public:
  MaskedDataset(std::unique_ptr<Dataset> plain, std::uint64_t seed, MaskingSettings masking = {});

  Signature signature() const override;
  Index mask() const { return plain().vocabulary(); }
  Batch training(Index index, Index batch, Index context) const override;
  Batch validation(Index index, Index batch, Index context) const override;

  nlohmann::json describe() const override;
  // Properties of next-token prediction do not apply to masked tokens.
  TargetGroups groups() const override { return {}; }
  std::optional<double> optimum(Index, Index) const override { return std::nullopt; }
  std::optional<TextUnits> held_out_units() const override { return std::nullopt; }
  std::vector<std::pair<std::string, double>> reference_losses() const override { return {}; }

 private:
  Batch masked(Batch const& plain, Stream const& stream, Index first_row) const;

  MaskingSettings masking_;
  std::uint64_t seed_;
  std::optional<Index> end_;  // of a sentence
};

}  // namespace heed
