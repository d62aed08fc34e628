#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/metric/evaluated_batch.hpp"

namespace heed {

/// Rows of about one length.
struct LengthGroup {
  std::int64_t shortest = 0, longest = 0, rows = 0;
  double mean = 0;  ///< length
};

/// The same in batches.
struct OfLength : LengthGroup {
  std::vector<std::vector<HeldOut>> folds;  ///< parts of about as many rows, at most most_folds; each in batches
};

/// How many parts of its rows a metric is computed without, in turn, to say how sure it is.
inline constexpr std::int64_t most_folds = 10;

/// All held-out rows by their length: that of the source if they have one, else their own.
struct ByLength {
  std::string length_of;  ///< "source", "row"; empty: the rows do not differ in length, and are one group
  std::int64_t rows = 0;
  std::vector<OfLength> groups;  ///< from the shortest on, of about as many rows each
};

/// `read`: rows of a batch as the data are asked for them, which what is random in them may depend on. `at_once`: of the batches made.
/// Rows of one length are never in two groups. Folds do not depend on `at_once`. Throws what the data throw.
ByLength by_length(Dataset const& data, std::int64_t context, std::int64_t read, std::int64_t at_once);

}  // namespace heed
