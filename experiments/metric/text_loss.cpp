#include "experiments/metric/text_loss.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "autograd/graph.hpp"

namespace heed {

namespace {

/// Windows first, first + 1, … of a text; what stands behind its end is padding.
Batch windows_of(std::span<Index const> tokens, Index context, Index stride, Index first, Index count) {
  Index const last = std::ssize(tokens) - 1;  // whose successor is not known
  Index const longest = std::min(context, last - first * stride);
  Tensor inputs = Tensor::full({count, longest}, 0, DType::int64), targets = Tensor::full({count, longest}, -1, DType::int64);
  std::vector<Index> lengths;
  for (Index row = 0; row < count; ++row) {
    Index const begin = (first + row) * stride, length = std::min(context, last - begin);
    Index const known = first + row == 0 ? 0 : context - stride;  // targets of the window before
    auto const from = tokens.begin() + begin;
    std::copy_n(from, length, inputs.mutable_data<std::int64_t>().begin() + row * longest);
    std::copy(from + 1 + known, from + 1 + length, targets.mutable_data<std::int64_t>().begin() + row * longest + known);
    lengths.push_back(length);
  }
  Batch batch{{"inputs", inputs}, {"targets", targets}};
  if (lengths.back() < longest) batch.set("lengths", Tensor::of(lengths, {count}));
  return batch;
}

}  // namespace

TextLoss text_loss(Model const& model, std::span<Index const> tokens, Index stride, Index rows, std::function<void(Index)> const& seen) {
  NoGrad const quiet;
  Index const context = model.context(), predicted = std::ssize(tokens) - 1;
  if (predicted < 1) throw Error(fmt::format("too short: {} tokens (the loss of a text needs 2)", tokens.size()));
  if (stride < 1 || stride > context) throw Error(fmt::format("a stride of {} is not from 1 to the context, {}", stride, context));
  auto const unknown = std::ranges::find_if(tokens, [&](Index token) { return token < 0 || token >= model.vocabulary(); });
  if (unknown != tokens.end())
    throw Error(fmt::format("token {} at position {} is outside the model's vocabulary of {}", *unknown, unknown - tokens.begin(),
                            model.vocabulary()));
  Index const windows = 1 + (std::max<Index>(predicted - context, 0) + stride - 1) / stride;
  TextLoss result;
  for (Index first = 0; first < windows; first += rows) {
    Batch const batch = windows_of(tokens, context, stride, first, std::min(rows, windows - first));
    Tensor const targets = batch["targets"].viewed({batch["targets"].elements()});
    model.each_logits(batch, {}, [&](Index row, Tensor const& logits) {
      result.nats += cross_entropy(logits, targets.rows(row, logits.size(0)), 0, -1, 1.0).item();
    });
    result.tokens += static_cast<Index>(counted(targets));
    if (seen) seen(result.tokens);
  }
  return result;
}

}  // namespace heed
