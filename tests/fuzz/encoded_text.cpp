#include "autograd/index.hpp"
#include "experiments/data/text.hpp"
#include "tests/fuzz/fuzz.hpp"

void heed::fuzz::one_input(std::string_view text) {
  reads([&] {
    Index sum = 0;
    if (auto const found = EncodedText::read(file_of("input", text), "key"))
      for (auto const token : found->tokens) sum += token;
    must(sum < Index{1} << 60);
  });
}
