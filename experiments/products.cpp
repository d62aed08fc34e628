#include "experiments/products.hpp"

#include "autograd/products.hpp"

namespace heed {

void use_products(std::string const& library, std::string const& precision) {
  set_products(
      {.library = library == "onednn" ? Products::Library::onednn : Products::Library::openblas, .bfloat16 = precision == "bfloat16"});
}

}  // namespace heed
