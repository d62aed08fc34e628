#include "experiments/config/yaml.hpp"

#include "tests/fuzz/fuzz.hpp"

using namespace heed;

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  std::string text;
  if (fuzz::reads([&] { text = emit(parse_yaml(fuzz::text_of(data, size), "input")); }))
    fuzz::must(emit(parse_yaml(text, "emitted")) == text);  // what is written reads back as the same
  return 0;
}
