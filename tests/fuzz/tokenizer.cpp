#include "experiments/data/tokenizer.hpp"

#include "tests/fuzz/fuzz.hpp"

using namespace heed;

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  fuzz::reads([&] {
    auto const tokenizer = restore_tokenizer(std::string(fuzz::text_of(data, size)));
    fuzz::must(restore_tokenizer(tokenizer->json())->vocabulary() == tokenizer->vocabulary());
    for (std::int64_t token = 0; token < tokenizer->vocabulary(); ++token) tokenizer->decode({token});
  });
  return 0;
}
