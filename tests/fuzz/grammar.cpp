#include "experiments/data/grammar.hpp"

#include "tests/fuzz/fuzz.hpp"

void heed::fuzz::one_input(std::string_view text) {
  reads([&] { Grammar::read(text, "input"); });
}
