// What heed inspect shows a model of text: a text.

#include <fmt/format.h>

#include "experiments/commands/inspection.hpp"

namespace heed {

namespace {

struct InspectedText : Inspected {
  using Inspected::Inspected;

  void show(InspectOptions const& options) override {
    if (options.target)
      throw ConfigError("--target", fmt::format("{}, of kind {}, has no source: give only --text", path.string(), run.settings.model.kind));
    auto const tokens = tokenizers.inputs ? encoded(options.text) : numbers(options.text, "--text", "inputs");
    if (tokens.empty()) throw ConfigError("--text", "holds no tokens");
    auto const length = std::ssize(tokens);
    if (auto const limit = run.model->limit(); limit && length > *limit)
      throw ConfigError("--text", fmt::format("is {} tokens long, but the model reads at most {}", length, *limit));
    check_length("--text", tokens.size());
    batch = {{"inputs", row_of(tokens)}};
  }
};

Declared<Inspection> const text_inspection{inspection_by<InspectedText>(4, [](TrainedModel const&) { return true; })};

}  // namespace

}  // namespace heed
