#include "nn/heads/head.hpp"

#include <algorithm>

#include "autograd/error.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/index.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/ops/shape.hpp"

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

Tensor mean_of_tokens(Tensor const& x, Tensor const& lengths) {
  Index const rows = x.size(0), tokens = x.size(1);
  std::vector<double> shares(static_cast<std::size_t>(rows * tokens), 0.0);
  for (Index row = 0; row < rows; ++row) {
    Index const length = lengths.defined() ? at(lengths.data<std::int64_t>(), row) : tokens;
    auto const begin = shares.begin() + row * tokens;
    std::fill(begin, begin + length, 1 / static_cast<double>(length));
  }
  return sum(x * Tensor::of(shares, {rows, tokens, 1}, x.dtype()), {1});
}

Tensor at_summary(Tensor const& x, Tensor const& lengths, bool first) {
  Index const rows = x.size(0), tokens = x.size(1);
  std::vector<Index> index;
  for (Index row = 0; row < rows; ++row) {
    Index const length = lengths.defined() ? at(lengths.data<std::int64_t>(), row) : tokens;
    index.push_back(row * tokens + (first ? 0 : length - 1));
  }
  return take(reshape(x, {rows * tokens, x.size(2)}), index);
}

}  // namespace heed
