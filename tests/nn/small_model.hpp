#pragma once

#include "nn/model.hpp"
#include "tests/test.hpp"

namespace heed::test {

/// A model in a test's hands, which says what a pass gives; its sizes are what it is told.
struct SmallModel : Model {
  SmallModel(std::int64_t context, std::int64_t vocabulary, std::int64_t width = 1) : sizes{context, vocabulary, width} {}
  std::int64_t context() const override { return sizes[0]; }
  std::int64_t vocabulary() const override { return sizes[1]; }
  std::int64_t width() const override { return sizes[2]; }
  double flops_per_token() const override { return 0; }

  std::int64_t sizes[3];
};

}  // namespace heed::test
