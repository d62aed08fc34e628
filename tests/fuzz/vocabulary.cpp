#include "experiments/data/tokenizers/tokenizers.hpp"
#include "tests/fuzz/fuzz.hpp"

// vocab.json, a zero, and merges.txt. What is read encodes any bytes without loss, and is read again as it was written.
void heed::fuzz::one_input(std::string_view text) {
  auto const tokens = std::min(text.find('\0'), text.size());
  file_of("vocab.json", text.substr(0, tokens));
  file_of("merges.txt", text.substr(std::min(tokens + 1, text.size())));
  reads([&] {
    auto const pairs = read_byte_pairs(folder());
    for (bool const special : {false, true}) {
      std::string back;
      for (auto const token : pairs->encode(text, special)) back += pairs->bytes(token);
      must(back == text);
    }
    write_byte_pairs(*pairs, folder() / "again");
    auto const again = read_byte_pairs(folder() / "again");
    must(again->tokens() == pairs->tokens() && again->merges() == pairs->merges());
  });
}
