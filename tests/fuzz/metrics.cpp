#include "experiments/folder/csv.hpp"
#include "experiments/folder/record.hpp"
#include "tests/fuzz/fuzz.hpp"

void heed::fuzz::one_input(std::string_view text) {
  auto const path = file_of("metrics.jsonl", text);
  reads([&] {
    last_step(folder());
    read_history(folder());
    csv_of(read_rows(folder()));
  });
  reads([&] { Metrics const kept(path, 5); });
}
