#include "experiments/run/csv.hpp"
#include "experiments/run/record.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace heed;

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  auto const path = fuzz::file_of("metrics.jsonl", data, size);
  fuzz::reads([&] {
    last_step(fuzz::folder());
    read_history(fuzz::folder());
    csv_of(read_rows(fuzz::folder()));
  });
  fuzz::reads([&] { Metrics const kept(path, 5); });
  return 0;
}
