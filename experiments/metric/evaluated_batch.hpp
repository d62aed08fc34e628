#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/data/dataset.hpp"
#include "experiments/metric/metric.hpp"
#include "nn/decode.hpp"
#include "nn/model.hpp"

namespace heed {

/// How targets are decoded unless it is said otherwise: the most probable token at every step.
inline constexpr BeamSettings greedily{.width = 1, .length_penalty = 0};

/// Some held-out rows of a data set.
struct HeldOut {
  Batch batch;
  std::vector<std::int64_t> numbers;          ///< of the rows, in the data's order
  std::vector<std::vector<Link>> links = {};  ///< of each row, as Dataset::links(); empty: they are not known
};

/// Held-out batch number `index` of so many rows.
HeldOut held_out(Dataset const& data, std::int64_t index, std::int64_t rows, std::int64_t context);

/// What a model makes of held-out rows. Metrics of one batch share it.
class EvaluatedBatch {
 public:
  using Metrics = std::vector<Metric*>;

  /// A pass over the rows, whose logits are shown to the metrics. `search`: how targets are decoded. All must outlive it.
  EvaluatedBatch(Dataset const& data, Model const& model, HeldOut const& rows, Pass const& pass, BeamSettings const& search,
                 Metrics const& metrics);

  Dataset const& data() const { return data_; }
  Batch const& batch() const { return rows_.batch; }
  HeldOut const& rows() const { return rows_; }
  /// Of the model's terms, the first of which is what metrics are of unless they say otherwise.
  std::vector<Prediction> const& predictions() const { return predictions_; }
  /// The targets of the first term.
  Tensor const& targets() const { return batch()[predictions_.front().term.targets]; }
  /// Sums of the cross entropies of the targets that count, in nat: of one block of places after the other.
  std::vector<double> const& losses() const { return losses_; }
  /// The most probable token of each place, all rows one after the other.
  std::vector<std::int64_t> const& best() const { return best_; }
  /// What each row's source is decoded to, made when it is first asked for: the best that the search finds.
  std::vector<Decoded> const& decoded() const;
  /// Of every layer that attends to what targets are written of: the weights [B, T, S], means of its heads. Made when first asked for.
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
  std::vector<std::int64_t> best_;
  mutable std::optional<std::vector<Decoded>> decoded_;
  mutable std::optional<std::vector<AttentionRecord>> source_maps_;
};

/// Runs the model over the rows and adds what it makes of them to the metrics.
void measure(Dataset const& data, Model const& model, HeldOut const& rows, Pass const& pass, BeamSettings const& search,
             EvaluatedBatch::Metrics const& metrics);

/// Whether the first term of the model's loss is this one: "token", "label", "span".
bool predicts(Model const& model, std::string_view term);

/// Why sources of these data cannot be decoded by the model; nothing: they can.
std::optional<std::string> no_decoding(Dataset const& data, Model const& model);

/// EvaluatedBatch::source_maps() of a batch; empty for a model that has no attention to a source.
std::vector<AttentionRecord> source_maps(Model const& model, Batch const& batch, Pass const& pass);

/// The words of a row's target as the data give them to a decoder, without marks of its beginning and end.
std::vector<std::int64_t> target_of(Batch const& batch, std::int64_t row);

}  // namespace heed
