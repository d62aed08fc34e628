#include "nn/heads/head.hpp"

#include "autograd/error.hpp"

namespace heed {

Choice head_choice(SeesText sees) {
  return choice_of<HeadKind>("language_model", [sees](HeadKind const& kind) { return kind.only.value_or(sees) == sees; });
}

HeadSettings const& head_settings(Choice const& choice) { return chosen_settings<HeadSettings>(choice, "head"); }

bool has_options(Signature const& data) { return data.has("label") && data["label"].vocabulary == option_labels; }

void check_options(Signature const& data) {
  if (!has_options(data)) throw Error("model.head: these data have no options to choose from; use head: classification");
}

Tensor sequences_of(Tensor const& inputs) {
  return inputs.rank() == 3 ? inputs.viewed({inputs.size(0) * inputs.size(1), inputs.size(2)}) : inputs;
}

Tensor lengths_of_sequences(Batch const& batch) {
  Tensor const lengths = batch.get("lengths");
  return lengths.defined() && lengths.rank() == 2 ? lengths.viewed({lengths.elements()}) : lengths;
}

}  // namespace heed
