#pragma once

#include "experiments/data/dataset.hpp"
#include "tests/json.hpp"
#include "tests/test.hpp"

namespace heed::test {

/// Data in a test's hands: without rows, texts or descriptions unless it gives some.
struct SmallDataset : Dataset {
  explicit SmallDataset(Signature parts) : signature_(std::move(parts)) {}
  Signature signature() const override { return signature_; }
  Batch training(std::int64_t, std::int64_t, std::int64_t) const override { return {}; }
  std::int64_t validation_batches(std::int64_t, std::int64_t) const override { return 0; }
  Batch validation(std::int64_t, std::int64_t, std::int64_t) const override { return {}; }
  Json describe() const override { return {}; }

 private:
  Signature signature_;
};

}  // namespace heed::test
