#include "nn/files/safetensors.hpp"

#include "tests/fuzz/fuzz.hpp"

void heed::fuzz::one_input(std::string_view text) {
  reads([&] {
    SafetensorsFile const file(file_of("input.safetensors", text));
    for (auto const& name : file.names()) file.tensor(name);
  });
}
