#include "experiments/run/foreign_model.hpp"

#include "experiments/exchange/huggingface.hpp"
#include "experiments/run/weights.hpp"

namespace heed {

TrainedModel open_foreign_model(std::filesystem::path const& folder, std::optional<DType> dtype) {
  PortableModel const read = read_gpt2(folder);
  TrainedModel run;
  run.foreign = true;
  run.settings.name = (folder / ".").lexically_normal().parent_path().filename().string();
  run.settings.model = read.model;
  run.settings.dtype = to_string(dtype.value_or(read.tensors.front().second.dtype()));
  run.data = Signature::tokens(read.vocabulary);
  run.tokenizer = run.source_tokenizer = read.tokenizer;
  set_products(run.settings.products());
  run.parameters = std::make_unique<Parameters>(0, run.settings.precision());
  run.model = make_model(run.settings.model, *run.parameters, run.data);
  assign_from(read.origin, read.tensors, *run.parameters);
  return run;
}

}  // namespace heed
