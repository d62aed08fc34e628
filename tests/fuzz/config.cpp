#include "experiments/train/experiment.hpp"
#include "tests/fuzz/fuzz.hpp"

void heed::fuzz::one_input(std::string_view text) {
  Experiment settings, again;
  if (reads([&] { fill(parse(text, "input"), settings); })) {
    fill(parse(emit(settings), "resolved"), again);
    must(emit(again) == emit(settings));  // a resolved configuration stands for itself
  }
}
