#include "experiments/run/experiment.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace heed;

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  fuzz::reads([&] {
    auto document = parse("data: {kind: recall}\nmodel: {kind: gpt, layers: 1, heads: 1, width: 8, context: 8}\n", "base");
    assign(document, fuzz::text_of(data, size));
    Experiment settings;
    fill(document, settings);
  });
  return 0;
}
