#pragma once

#include "experiments/data/dataset.hpp"
#include "tests/json.hpp"

namespace heed::test {

/// Data in a test's hands: without rows, texts or descriptions unless it gives some.
struct SmallDataset : Dataset {
  explicit SmallDataset(Signature parts) { facts_.signature = std::move(parts); }
  Batch training(Index, Index, Index) const override { return {}; }
  Index validation_batches(Index, Index) const override { return 0; }
  Batch validation(Index, Index, Index) const override { return {}; }
};

}  // namespace heed::test
