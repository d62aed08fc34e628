#include "experiments/run/experiment.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace heed;

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  Experiment settings, again;
  if (fuzz::reads([&] { fill(parse(fuzz::text_of(data, size), "input"), settings); })) {
    fill(parse(emit(settings), "resolved"), again);
    fuzz::must(emit(again) == emit(settings));  // a resolved configuration stands for itself
  }
  return 0;
}
