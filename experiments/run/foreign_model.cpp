#include "experiments/run/foreign_model.hpp"

#include <fmt/format.h>

#include "experiments/data/tokenizer.hpp"
#include "experiments/run/exchange/huggingface.hpp"
#include "experiments/run/weights.hpp"

namespace heed {

TrainedModel open_foreign_model(std::filesystem::path const& folder, std::optional<DType> dtype) {
  PortableModel const read = read_gpt2(folder);
  TrainedModel run;
  run.foreign = true;
  run.weights = "last";
  run.settings.name = (folder / ".").lexically_normal().parent_path().filename().string();
  run.settings.model = read.model;
  run.settings.dtype = to_string(dtype.value_or(read.tensors.front().second.dtype()));
  run.data = Signature::tokens(read.vocabulary);
  run.tokenizer = run.source_tokenizer = read.tokenizer;
  // A table of embeddings may have more rows than there are tokens: nanoGPT's has 50304, which is faster on a GPU.
  if (auto inputs = run.data["inputs"]; !read.tokenizer.empty()) {
    for (auto token = restore_tokenizer(read.tokenizer)->vocabulary(); token < read.vocabulary; ++token)
      inputs.added.push_back(fmt::format("[{}]", token));
    run.data.set(inputs);
  }
  set_products(run.settings.products());
  run.parameters = std::make_unique<Parameters>(0, run.settings.precision());
  run.model = make_model(run.settings.model, *run.parameters, run.data);
  assign_from(read.origin, read.tensors, *run.parameters);
  return run;
}

}  // namespace heed
