#include "experiments/config/yaml.hpp"

#include "tests/fuzz/fuzz.hpp"

void heed::fuzz::one_input(std::string_view text) {
  std::string written;
  if (reads([&] { written = emit(parse_yaml(text, "input")); }))
    must(emit(parse_yaml(written, "emitted")) == written);  // what is written reads back as the same
}
