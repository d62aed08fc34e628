#include "experiments/data/encoded_text.hpp"

#include "tests/fuzz/fuzz.hpp"

using namespace heed;

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  fuzz::reads([&] {
    std::int64_t sum = 0;
    if (auto const text = EncodedText::read(fuzz::file_of("input", data, size)))
      for (auto const token : *text) sum += token;
    fuzz::must(sum < std::int64_t{1} << 60);
  });
  return 0;
}
