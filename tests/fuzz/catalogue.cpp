#include "experiments/data/catalogue.hpp"

#include "tests/fuzz/fuzz.hpp"

void heed::fuzz::one_input(std::string_view text) {
  reads([&] { read_catalogue(text, "input"); });
}
