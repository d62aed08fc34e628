#include "experiments/data/catalogue.hpp"

#include "tests/fuzz/fuzz.hpp"

using namespace heed;

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  fuzz::reads([&] { read_catalogue(fuzz::text_of(data, size), "input"); });
  return 0;
}
