// What heed inspect shows a model that reads a source: a source, and a target.

#include "experiments/commands/inspect.hpp"
#include "experiments/commands/translator.hpp"

namespace heed {

namespace {

struct InspectedPair : Inspected {
  using Inspected::Inspected;

  void show(InspectOptions const& options) override {
    if (!tokenizers.inputs) {
      if (!options.target) throw ConfigError("--target", "is needed: the run's data have no text, so that nothing can be translated");
      auto const source = numbers(options.text, "--text", "source"), inputs = numbers(*options.target, "--target", "inputs");
      check_length("--text", source.size());
      check_length("--target", inputs.size());
      batch = {{"source", row_of(source)}, {"inputs", row_of(inputs)}};
      return;
    }
    Translator const translator(run);
    tokenizers.source = translator.source_words();
    auto const source = checked("--text", [&] { return translator.read(options.text); });
    if (source.empty()) throw ConfigError("--text", "holds no words");
    check_length("--text", source.size());
    std::vector<Index> target;
    if (options.target) {
      auto const given = checked("--target", [&] { return translator.read_target(*options.target); });
      target.assign(given.begin(), given.end());
      check_length("--target", target.size());
    } else {
      target = translator.translate(std::span(&source, 1), options.beam).front().front().tokens;
      written = translator.text(target);
    }
    batch = translator.batch(source, target);
  }
};

Declared<Inspection> const source_inspection{inspection_by<InspectedPair>(2, reads_source)};

}  // namespace

}  // namespace heed
