#pragma once

#include "experiments/train/experiment.hpp"
#include "tests/folder.hpp"

namespace heed::test {

/// Leaves a run `tiny` in a folder, without its data, as training would that had not begun: a model of these settings for such data, after
/// a change of its parameters, and tokenizers by the names of their keys, of which empty ones are none.
inline void save_untrained(Folder const& folder, std::string const& settings, Signature const& data,
                           std::map<std::string, std::string> const& tokenizers, std::function<void(Parameters&)> const& change = {}) {
  std::filesystem::create_directory(folder / "tiny");
  put(folder / "tiny/config.yaml", "name: tiny\ndata: {kind: text, path: gone.txt}\n" + settings);
  Experiment experiment;
  fill(load(folder / "tiny/config.yaml"), experiment);
  Parameters parameters(1, experiment.precision(), experiment.init);
  make_model(experiment.model, parameters, data);
  if (change) change(parameters);
  Checkpoint checkpoint;
  checkpoint.parameters = parameters.all();
  checkpoint.metadata = {{"data", data.text()}};
  for (auto const& [key, tokenizer] : tokenizers)
    if (!tokenizer.empty()) checkpoint.metadata[key] = tokenizer;
  save_checkpoint(folder / "tiny", checkpoint);
}

}  // namespace heed::test
