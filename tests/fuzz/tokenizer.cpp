#include "experiments/data/tokenizer.hpp"

#include "tests/fuzz/fuzz.hpp"

void heed::fuzz::one_input(std::string_view text) {
  reads([&] {
    auto const tokenizer = restore_tokenizer(std::string(text));
    must(restore_tokenizer(tokenizer->json())->vocabulary() == tokenizer->vocabulary());
    for (Index token = 0; token < tokenizer->vocabulary(); ++token) tokenizer->decode({token});
  });
}
