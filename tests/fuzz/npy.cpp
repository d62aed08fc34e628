#include "nn/files/npz.hpp"
#include "tests/fuzz/fuzz.hpp"

void heed::fuzz::one_input(std::string_view text) {
  NpyArray const array{"input", std::string(text)};
  reads([&] { array.tensor(); });
  reads([&] { array.texts(); });
}
