#include "experiments/data/examples/files.hpp"
#include "tests/fuzz/fuzz.hpp"

/// The first byte says how the file is written.
void heed::fuzz::one_input(std::string_view text) {
  if (text.empty()) return;
  static constexpr char const* formats[] = {"tsv", "csv", "jsonl", "blank", "squad"};
  auto const kind = static_cast<unsigned char>(text[0]) % 5;
  file_of("examples", text.substr(1));
  FileExamples settings;
  settings.training = "examples";
  settings.format = formats[kind];
  settings.header = kind < 2 || kind == 3;
  if (kind == 4) settings.unanswerable = 0.5;
  if (kind == 1) settings.second = "{passage}", settings.answer = "{answer}", settings.start = "{start}";
  if (kind == 2) settings.options = {"{options.0}", "{options.1}"};
  reads([&] { must(!settings.read({folder(), folder(), 1, true}).training.empty()); });
}
