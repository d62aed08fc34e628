#pragma once

#include "nn/model.hpp"
#include "tests/test.hpp"

namespace heed::test {

/// A model in a test's hands, which says what a pass gives; its sizes are what it is told.
struct SmallModel : Model {
  SmallModel(Index context, Index vocabulary, Index width = 1) : sizes{context, vocabulary, width} {}
  Index context() const override { return sizes[0]; }
  Index vocabulary() const override { return sizes[1]; }
  Index width() const override { return sizes[2]; }
  double flops_per_token() const override { return 0; }

  Index sizes[3];
};

}  // namespace heed::test
