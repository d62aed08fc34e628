#include "nn/files/npz.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace heed;

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  NpyArray const array{"input", std::string(fuzz::text_of(data, size))};
  fuzz::reads([&] { array.tensor(); });
  fuzz::reads([&] { array.texts(); });
  return 0;
}
