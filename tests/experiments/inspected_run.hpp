#pragma once

#include "experiments/commands/inspect.hpp"
#include "tests/folder.hpp"

namespace heed::test {

/// A run's folder with an untrained model, as training would leave it.
struct InspectedRun {
  explicit InspectedRun(std::string const& tokenizer, std::string const& kind = "gpt", std::string const& more = "",
                        std::string const& source = "") {
    std::filesystem::create_directory(folder / "tiny");
    put(folder / "tiny/config.yaml", "name: tiny\ndtype: float64\ndata: {kind: text, path: gone.txt}\ninit: {std: 0.5}\nmodel: {kind: " +
                                         kind + ", layers: 2, heads: 3, width: 12, context: 16" + more + "}\n");
    Experiment settings;
    fill(load(folder / "tiny/config.yaml"), settings);
    auto const size = (tokenizer.empty() ? 5 : restore_tokenizer(tokenizer)->vocabulary()) + (kind == "bert" ? 2 : 0);
    Parameters parameters(1, DType::float64, settings.init);
    Signature data = Signature::tokens(size);
    if (kind == "bert") data.set({.name = "inputs", .classes = size, .added = {"[MASK]", "[SEP]"}});  // it goes by its name
    auto const source_size = source.empty() ? size : restore_tokenizer(source)->vocabulary();
    if (kind == "transformer") data.set({.name = "source", .classes = source_size, .vocabulary = source.empty() ? "" : "source"});
    auto const model = make_model(settings.model, parameters, data);
    Checkpoint checkpoint;
    checkpoint.parameters = parameters.all();
    checkpoint.metadata = {{"data", data.text()}};
    if (!tokenizer.empty()) checkpoint.metadata["tokenizer"] = tokenizer;
    if (!source.empty()) checkpoint.metadata["source_tokenizer"] = source;
    save_checkpoint(folder / "tiny", checkpoint);
  }
  std::string operator()(std::string const& text, std::size_t width = 0, std::optional<std::string> const& target = {},
                         BeamSettings const& beam = {.width = 1, .length_penalty = 0.6}) const {
    InspectOptions options;
    options.run = folder / "tiny";
    options.text = text;
    options.width = width;
    options.target = target;
    options.beam = beam;
    std::ostringstream out;
    auto const code = inspect(options, out);
    CHECK(code == Exit::done);
    return out.str();
  }
  Folder folder;
};

}  // namespace heed::test
