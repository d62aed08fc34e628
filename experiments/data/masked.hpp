#pragma once

#include <memory>
#include <optional>

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

  Index mask() const { return plain().vocabulary(); }

 private:
  Batch shown(Batch plain, ShownRows const& rows) const override;

  MaskingSettings masking_;
  std::uint64_t seed_;
  std::optional<Index> end_;  // of a sentence
};

}  // namespace heed
