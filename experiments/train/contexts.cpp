#include "experiments/train/contexts.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "autograd/graph.hpp"
#include "autograd/ops/softmax.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/metric/info.hpp"
#include "experiments/metric/row.hpp"
#include "nn/batch.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/models/blocks.hpp"

namespace heed {

double LossByPosition::MeanLoss::standard_error() const {
  if (count < 2) return std::numeric_limits<double>::quiet_NaN();
  return std::sqrt(squares / static_cast<double>(count - 1) / static_cast<double>(count));
}

void LossByPosition::observe(Batch const& batch, Index first, Tensor const& logits) {
  Tensor const& targets = batch["targets"];
  Index const length = targets.size(1), vocabulary = logits.size(1);
  Tensor const log_shares = log_softmax(logits);
  positions_.resize(std::max(positions_.size(), static_cast<std::size_t>(length)));
  for (Index i = 0; i < logits.size(0); ++i) {
    auto const target = heed::at(targets.data<std::int64_t>(), first + i);
    if (target < 0) continue;
    double const loss = -log_shares.at(i * vocabulary + target);
    MeanLoss& position = heed::at(positions_, (first + i) % length);  // Welford's update
    position.count += 1;
    double const beside = loss - position.mean;
    position.mean += beside / static_cast<double>(position.count);
    position.squares += beside * (loss - position.mean);
  }
}

namespace {

/// A metric at other lengths: `name` with the current weights, "validation.ema.…" with averaged ones.
MetricInfo at_lengths(std::string const& prefix, std::string const& name, std::string const& more) {
  bool const loss = name == "loss";
  return {prefix + name + ".length*", loss ? "nat" : "", loss ? Better::lower : Better::higher,
          "validation." + name + " on sequences of this many tokens" + more, loss ? Bounds{.min = 0} : fraction};
}
Declared<MetricInfo> const loss_at_lengths{at_lengths("validation.", "loss", " (train.evaluate.lengths)")};
Declared<MetricInfo> const accuracy_at_lengths{at_lengths("validation.", "accuracy", " (train.evaluate.lengths)")};
Declared<MetricInfo> const averaged_loss_at_lengths{at_lengths("validation.ema.", "loss", "; of averaged weights")};
Declared<MetricInfo> const averaged_accuracy_at_lengths{at_lengths("validation.ema.", "accuracy", "; of averaged weights")};

/// Why the model cannot read rows of so many tokens, more than its context, and what can; nothing: it can.
std::optional<std::string> no_reach(Choice const& choice, Model const& model, Dataset const& data, Index length) {
  std::string const up_to = fmt::format("lengths up to {} can be read", model.context());
  if (auto const limit = model.limit(); limit && length > *limit) {
    auto const* const stack = dynamic_cast<StackSettings const*>(choice.settings.get());
    if (stack != nullptr && position_kind(stack->position.kind).beyond == "not defined") {
      std::vector<std::string> others;
      for (PositionKind const& kind : Registry<PositionKind>::all())
        if (kind.beyond.starts_with("defined") && (stack->causal || !kind.of_the_past)) others.push_back(kind.name);
      return fmt::format("{} positions end with model.context: {}; model.position: {} does not", stack->position.kind, *limit,
                         listed(others, "or"));
    }
    return fmt::format("the model reads {} tokens at most; {}", *limit, up_to);
  }
  try {
    NoGrad const no_grad;
    model.run(data.validation(0, 1, length).first(1), {});
  } catch (Error const& error) {
    return fmt::format("{}; {}", error.what(), up_to);
  }
  return std::nullopt;
}

/// Sequences per batch at a length: as many tokens as at the trained length, so that equal numbers of batches cover the same stretch of a
/// text.
Index rows_at_once(TrainSettings const& train, Index context, Index length) {
  return std::max<Index>(1, train.evaluate.batch.value_or(train.batch) * context / length);
}

/// The length of the longest held-out row up to its last scored target, in tokens, or that of the first row longer than `enough`.
Index longest_row(Dataset const& data, Index rows, Index length, Index enough) {
  Index longest = 0;
  for (Index i = 0, count = data.validation_batches(rows, length); i < count && longest <= enough; ++i) {
    Tensor const targets = data.validation(i, rows, length)["targets"];
    auto const all = targets.data<std::int64_t>();
    for (std::size_t at = 0; at < all.size(); ++at)
      if (all[at] >= 0) longest = std::max(longest, static_cast<Index>(at) % targets.size(1) + 1);
  }
  return longest;
}

/// Why no held-out rows of the data have this length; nothing: they have.
std::optional<std::string> no_rows(Dataset const& data, Index rows, Index length, Index context) {
  if (auto const source = written_of(data.signature()); !source.empty())
    return fmt::format("the length of a target depends on its {}; heed evaluate reports each metric by length", source);
  Index longest = 0;
  try {
    if (data.validation_batches(rows, length) == 0) return "there are no held-out data";
    data.validation(0, rows, length);
    if (length <= context) return std::nullopt;
    longest = longest_row(data, rows, length, context);
  } catch (Error const& error) {
    std::string const message = error.what(), key = "model.context: ";
    return message.starts_with(key) ? message.substr(key.size()) : message;
  }
  if (longest > context) return std::nullopt;
  return fmt::format(
      "held-out sequences of these data end after {} tokens, within model.context: {}; only texts, packed sentences (data.pack: true) and "
      "tasks without a length of their own, or with fill: true, fill any context",
      longest, context);
}

}  // namespace

Contexts::Contexts(LoadedExperiment const& experiment, Dataset const& data, Model const& model)
    : settings_(experiment.settings), data_(data), model_(model) {
  auto const& lengths = settings_.train.evaluate.lengths;
  std::string const key = "train.evaluate.lengths";
  if (bool const of_tokens = model.terms().front().targets == Term().targets; !lengths.empty() && !of_tokens)
    experiment.refuse(key, "needs a model that predicts tokens; this one's head predicts something else");
  for (std::size_t item = 0; item < lengths.size(); ++item) {
    auto const length = static_cast<Index>(lengths[item]);
    auto unavailable = no_rows(data, rows_at_once(settings_.train, model.context(), length), length, model.context());
    if (!unavailable && length > model.context()) unavailable = no_reach(settings_.model, model, data, length);
    if (unavailable) experiment.refuse(key, fmt::format("{}: {}", length, *unavailable), item);
  }
}

void Contexts::evaluate(EvaluatedBatch::Metrics const& metrics, Index length, Index most) const {
  NoGrad const no_grad;
  Index const rows = rows_at_once(settings_.train, model_.context(), length);
  Index const count = std::min(most, settings_.train.evaluate.count(data_.validation_batches(rows, length)));
  for (Index i = 0; i < count; ++i) {
    Pass pass;
    pass.decoding.choosing = Stream(static_cast<std::uint64_t>(settings_.seed), "validation").child(static_cast<std::uint64_t>(i));
    heed::measure(data_, model_, held_out(data_, i, rows, length), pass, greedily, metrics);
  }
}

void Contexts::measure(Row& row, std::string const& prefix) const {
  for (double const length : settings_.train.evaluate.lengths) {
    auto const loss = Registry<MetricKind>::find("loss")->make(data_), accuracy = Registry<MetricKind>::find("accuracy")->make(data_);
    evaluate({loss.get(), accuracy.get()}, static_cast<Index>(length));
    Row found;
    loss->write(found, prefix);
    accuracy->write(found, prefix);
    for (auto const& [name, value] : found.values) {
      auto key = MetricKey::of(name);
      key.length = static_cast<Index>(length);
      row.set(key.text(), value);
    }
  }
}

void Contexts::write(std::filesystem::path const& folder) const {
  auto const& lengths = settings_.train.evaluate.lengths;
  if (lengths.empty()) return;
  std::string table = "length,position,loss,standard_error,count\n";
  for (Index const length : std::set{model_.context(), static_cast<Index>(std::ranges::max(lengths))}) {
    LossByPosition by_position;
    evaluate({&by_position}, length);
    for (std::size_t i = 0; i < by_position.positions().size(); ++i) {
      auto const& position = by_position.positions()[i];
      if (position.count == 0) continue;
      std::string const error = position.count < 2 ? "NaN" : fmt::format("{}", position.standard_error());
      table += fmt::format("{},{},{},{},{}\n", length, i, position.mean, error, position.count);
    }
  }
  write_atomically(folder / "loss_by_position.csv", table);
}

}  // namespace heed
