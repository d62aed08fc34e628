#include "experiments/run/exchange/event_format.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace heed;

namespace {

std::string little(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
  return text;
}

void read_all(std::string const& bytes) {
  fuzz::reads([&] {
    EventReader reader(bytes, "events");
    while (reader.next()) {
    }
    fuzz::must(reader.end() <= bytes.size());
  });
}

}  // namespace

/// The input as a whole file, and as the data of a record whose checksums are right.
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  std::string const input(fuzz::text_of(data, size));
  read_all(input);
  auto const length = little(size, 8);
  read_all(version_record(1) + length + little(masked_crc32c(length), 4) + input + little(masked_crc32c(input), 4));
  return 0;
}
