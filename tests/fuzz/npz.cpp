#include "nn/files/npz.hpp"

#include "tests/fuzz/fuzz.hpp"

using namespace heed;

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  fuzz::reads([&] {
    for (auto const& [name, array] : read_npz(fuzz::file_of("input.npz", data, size))) {
      fuzz::reads([&, one = &array] { one->tensor(); });
      fuzz::reads([&, one = &array] { one->texts(); });
    }
  });
  return 0;
}
