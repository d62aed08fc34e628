#include "experiments/data/examples/files.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace heed;

/// The first byte says how the file is written.
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  if (size == 0) return 0;
  static constexpr char const* formats[] = {"tsv", "csv", "jsonl", "blank", "squad"};
  auto const kind = data[0] % 5;
  fuzz::file_of("examples", data + 1, size - 1);
  FileExamples settings;
  settings.training = "examples";
  settings.format = formats[kind];
  settings.header = kind < 2 || kind == 3;
  if (kind == 4) settings.unanswerable = 0.5;
  if (kind == 1) settings.second = "{passage}", settings.answer = "{answer}", settings.start = "{start}";
  if (kind == 2) settings.options = {"{options.0}", "{options.1}"};
  fuzz::reads([&] { fuzz::must(!settings.read({fuzz::folder(), fuzz::folder(), 1, true}).training.empty()); });
  return 0;
}
