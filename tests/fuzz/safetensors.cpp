#include "nn/files/safetensors.hpp"

#include "tests/fuzz/fuzz.hpp"

using namespace heed;

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  fuzz::reads([&] {
    SafetensorsFile const file(fuzz::file_of("input.safetensors", data, size));
    for (auto const& name : file.names()) file.tensor(name);
  });
  return 0;
}
