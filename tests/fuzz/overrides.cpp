#include "experiments/train/experiment.hpp"
#include "tests/fuzz/fuzz.hpp"

void heed::fuzz::one_input(std::string_view text) {
  reads([&] {
    auto document = parse("data: {kind: recall}\nmodel: {kind: gpt, layers: 1, heads: 1, width: 8, context: 8}\n", "base");
    assign(document, text);
    Experiment settings;
    fill(document, settings);
  });
}
