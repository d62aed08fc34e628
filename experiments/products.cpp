#include "experiments/products.hpp"

namespace heed {

Products products_named(std::string const& library, std::string const& precision) {
  return {.library = library == "onednn" ? Products::Library::onednn : Products::Library::openblas, .bfloat16 = precision == "bfloat16"};
}

}  // namespace heed
