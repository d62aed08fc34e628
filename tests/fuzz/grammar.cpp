#include "experiments/data/grammar.hpp"

#include "tests/fuzz/fuzz.hpp"

using namespace heed;

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  fuzz::reads([&] { Grammar::read(fuzz::text_of(data, size), "input"); });
  return 0;
}
