#include "experiments/data/dataset.hpp"

#include "experiments/data/tokenizer.hpp"

namespace heed {

std::string Dataset::tokenizer() const {
  auto const handle = tokenizer_handle();
  return handle ? handle->json() : "";
}

std::string Dataset::source_tokenizer() const {
  auto const handle = source_tokenizer_handle();
  return handle ? handle->json() : "";
}

}  // namespace heed
