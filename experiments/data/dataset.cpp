#include "experiments/data/dataset.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "experiments/data/tokenizer.hpp"

namespace heed {

RowRange rows_of_batch(std::string const& split, Index index, Index batch, Index rows) {
  Index const first = index * batch, count = std::min(batch, rows - first);
  if (index < 0 || count <= 0)
    throw Error(fmt::format("{} batch {} of {} does not exist", split, index, (std::max<Index>(rows, 0) + batch - 1) / batch));
  return {first, count};
}

std::string Dataset::tokenizer() const {
  auto const handle = tokenizer_handle();
  return handle ? handle->json() : "";
}

std::string Dataset::source_tokenizer() const {
  auto const handle = source_tokenizer_handle();
  return handle ? handle->json() : "";
}

}  // namespace heed
