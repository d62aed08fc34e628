#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autograd/registry.hpp"
#include "experiments/data/dataset.hpp"
#include "experiments/metric/info.hpp"
#include "experiments/metric/row.hpp"
#include "nn/decode.hpp"
#include "nn/model.hpp"

namespace heed {

/// The default search: the most probable token at every step.
inline constexpr BeamSettings greedily{.width = 1, .length_penalty = 0};

/// Some held-out sequences of a data set.
struct HeldOut {
  Batch batch;
  std::vector<Index> numbers;                 ///< of the sequences, in the data's order
  std::vector<std::vector<Link>> links = {};  ///< per sequence (Original::links); empty: unknown
};

/// Held-out batch number `index` of this many sequences.
HeldOut held_out(Dataset const& data, Index index, Index rows, Index context);

class EvaluatedBatch;

/// A metric of held-out data, accumulated batch by batch.
class Metric {
 public:
  virtual ~Metric() = default;
  /// Receives the logits [n, V] of a batch's positions first … first + n − 1 (all sequences' positions, concatenated) before the batch is
  /// added: those of large vocabularies are never held whole.
  virtual void observe(Batch const& /*batch*/, Index /*first*/, Tensor const& /*logits*/) {}
  virtual void add(EvaluatedBatch const& batch) = 0;
  /// Sets PREFIX.NAME from what was added: NaN if no target counts; a name with a * then has no value.
  virtual void write(Row& row, std::string const& prefix) const = 0;
};

/// A kind of metric, declared in its own file: `heed run` writes it as validation.NAME, for averaged weights as validation.ema.NAME.
struct MetricKind {
  MetricInfo info;
  std::optional<int> always = {};  ///< computed at every evaluation during training, in this order; nothing: only on request
  /// Why the metric does not apply to the data and the model, as "the data pose no task"; nothing: it applies. Null: it always applies.
  std::function<std::optional<std::string>(Dataset const& data, Model const& model)> unavailable = {};
  std::function<std::unique_ptr<Metric>(Dataset const& data)> make;

  /// Those with `always` in their order, then the others by name.
  std::pair<int, std::string_view> order() const { return {always.value_or(std::numeric_limits<int>::max()), info.name}; }
  /// The metrics that a run writes: plain and of averaged weights.
  void declare() const {
    for (auto const& [before, of] : {std::pair("validation.", ""), std::pair("validation.ema.", "; of averaged weights")})
      Declared<MetricInfo>({before + info.name, info.unit, info.better, info.help + of, info.bounds});
  }
};
extern template void Registry<MetricKind>::add(MetricKind);  // compiled once
inline std::string const& name_of(MetricKind const& kind) { return kind.info.name; }

/// A model's output for held-out sequences, shared by the metrics.
class EvaluatedBatch {
 public:
  using Metrics = std::vector<Metric*>;

  /// Runs the model; its logits are shown to the metrics. `search`: how targets are decoded. All arguments are kept by reference.
  EvaluatedBatch(Dataset const& data, Model const& model, HeldOut const& rows, Pass const& pass, BeamSettings const& search,
                 Metrics const& metrics);

  Dataset const& data() const { return data_; }
  Batch const& batch() const { return rows_.batch; }
  HeldOut const& rows() const { return rows_; }
  /// One per term of the model's loss; metrics use the first unless they say otherwise.
  std::vector<Prediction> const& predictions() const { return predictions_; }
  /// Targets of the first term.
  Tensor const& targets() const { return batch()[predictions_.front().term.targets]; }
  /// Sums of the cross entropies of the targets that count, in nat, per block of positions.
  std::vector<double> const& losses() const { return losses_; }
  /// The most probable token at each position of all sequences, concatenated.
  std::vector<Index> const& best() const { return best_; }
  /// The best decoding of each sequence's source; computed on first use.
  std::vector<Decoded> const& decoded() const;
  /// Per layer that attends from targets to the source: weights [B, T, S], means over heads. Computed on first use.
  std::vector<AttentionRecord> const& source_maps() const;
  bool has_decoded() const { return decoded_.has_value(); }

 private:
  Dataset const& data_;
  Model const& model_;
  HeldOut const& rows_;
  Pass const& pass_;
  BeamSettings search_;
  std::vector<Prediction> predictions_;
  std::vector<double> losses_;
  std::vector<Index> best_;
  mutable std::optional<std::vector<Decoded>> decoded_;
  mutable std::optional<std::vector<AttentionRecord>> source_maps_;
};

/// A metric that is a function of counts to which every batch adds: PREFIX.NAME, or what `write` sets of them.
template <class Counts>
class CountedMetric : public Metric {
 public:
  using Add = std::function<void(EvaluatedBatch const&, Counts&)>;
  using Write = std::function<void(Counts const&, Row&, std::string const& prefix)>;
  CountedMetric(Add add, Write write) : add_(std::move(add)), write_(std::move(write)) {}
  CountedMetric(std::string const& name, Add add, std::function<double(Counts const&)> const& value, Counts counts = {})
      : CountedMetric(std::move(add), [=](Counts const& all, Row& row, auto const& prefix) { row.set(prefix + "." + name, value(all)); }) {
    counts_ = std::move(counts);
  }

  void add(EvaluatedBatch const& batch) override { add_(batch, counts_); }
  void write(Row& row, std::string const& prefix) const override { write_(counts_, row, prefix); }

 private:
  Add add_;
  Write write_;
  Counts counts_ = {};
};

/// A sum, and over how many.
struct MeanCounts {
  double sum = 0, count = 0;
  double mean() const { return sum / count; }
};
using MeanMetric = CountedMetric<MeanCounts>;

/// Runs the model on the sequences and adds the results to the metrics.
void measure(Dataset const& data, Model const& model, HeldOut const& rows, Pass const& pass, BeamSettings const& search,
             EvaluatedBatch::Metrics const& metrics);

/// MetricKind::unavailable's answer: nothing if the metric applies, else why not.
std::optional<std::string> unless(bool applies, char const* why);

/// Whether the first term of the model's loss has this name: "token", "label", "span".
bool predicts(Model const& model, std::string_view term);

/// Why the model cannot decode targets for these data; nothing if it can.
std::optional<std::string> no_decoding(Dataset const& data, Model const& model);

/// EvaluatedBatch::source_maps() of a batch; empty for a model without attention to a source.
std::vector<AttentionRecord> source_maps(Model const& model, Batch const& batch, Pass const& pass);

/// The tokens of a sequence's target, without marks of its beginning and end.
std::vector<Index> target_of(Batch const& batch, Index row);

}  // namespace heed
