#include "experiments/data/tokenizers/byte_pairs.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace heed;

// vocab.json, a zero, and merges.txt. What is read encodes any bytes without loss, and is read again as it was written.
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  auto const text = fuzz::text_of(data, size);
  auto const tokens = std::min(text.find('\0'), size);
  fuzz::file_of("vocab.json", data, tokens);
  std::ofstream(fuzz::folder() / "merges.txt", std::ios::binary) << text.substr(std::min(tokens + 1, size));
  fuzz::reads([&] {
    auto const pairs = read_byte_pairs(fuzz::folder());
    for (bool const special : {false, true}) {
      std::string back;
      for (auto const token : pairs->encode(text, special)) back += pairs->bytes(token);
      fuzz::must(back == text);
    }
    write_byte_pairs(*pairs, fuzz::folder() / "again");
    auto const again = read_byte_pairs(fuzz::folder() / "again");
    fuzz::must(again->tokens() == pairs->tokens() && again->merges() == pairs->merges());
  });
  return 0;
}
