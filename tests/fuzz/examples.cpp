#include "experiments/data/examples/files.hpp"
#include "tests/fuzz/fuzz.hpp"

/// The first byte says how the file is written.
void heed::fuzz::one_input(std::string_view text) {
  if (text.empty()) return;
  auto const& formats = Registry<ExampleFormat>::all();
  ExampleFormat const& format = formats[static_cast<unsigned char>(text[0]) % formats.size()];
  file_of("examples", text.substr(1));
  FileExamples settings;
  settings.training = "examples";
  settings.format = format.name;
  settings.header = !format.lacks("header");
  if (format.passages) settings.unanswerable = 0.5;
  if (format.name == "csv") settings.second = "{passage}", settings.answer = "{answer}", settings.start = "{start}";
  if (format.name == "jsonl") settings.options = {"{options.0}", "{options.1}"};
  reads([&] { must(!settings.read({folder(), folder(), 1, true}).training.empty()); });
}
