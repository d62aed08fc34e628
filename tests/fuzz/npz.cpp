#include "nn/files/npz.hpp"

#include "tests/fuzz/fuzz.hpp"

void heed::fuzz::one_input(std::string_view text) {
  reads([&] {
    for (auto const& [name, array] : read_npz(file_of("input.npz", text))) {
      reads([&, one = &array] { one->tensor(); });
      reads([&, one = &array] { one->texts(); });
    }
  });
}
