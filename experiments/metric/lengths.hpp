#pragma once

#include <string>
#include <vector>

#include "experiments/metric/evaluated_batch.hpp"

namespace heed {

/// Sequences of similar length.
struct LengthGroup {
  Index shortest = 0, longest = 0, rows = 0;
  double mean = 0;  ///< length
};

/// A length group with its sequences in batches.
struct BatchedLengthGroup : LengthGroup {
  std::vector<std::vector<HeldOut>> folds;  ///< parts of about equal size, at most max_folds; each in batches
};

/// The number of jackknife parts, for a metric's standard error.
inline constexpr Index max_folds = 10;

/// All held-out sequences grouped by length: that of the source if there is one, else their own.
struct ByLength {
  std::string length_of;  ///< "source", "row"; empty: all have one length and form one group
  Index rows = 0;
  std::vector<BatchedLengthGroup> groups;  ///< in order of length, of about equal size
};

/// `read`: batch size in which data are read, on which random data may depend. `at_once`: size of the batches made. Sequences of one length
/// are in one group. Folds do not depend on `at_once`. Throws what the data throw.
ByLength by_length(Dataset const& data, Index context, Index read, Index at_once);

}  // namespace heed
