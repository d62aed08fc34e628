#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "autograd/attention/attention.hpp"
#include "autograd/ops/loss.hpp"
#include "autograd/random.hpp"
#include "autograd/tensor.hpp"
#include "nn/settings.hpp"

namespace heed {

/// Gradient estimators of hard attention: keys of `attention: {read: hard, …}`. Xu et al. 2015, section 4.1, with their defaults except for
/// λ_r, which is 1/10 in their program and 1, where the estimate is unbiased, in their paper.
struct EstimatorSettings {
  std::string estimator = "reinforce";
  std::string baseline = "moving_average";
  Index samples = 1;
  double entropy = 0.002;         ///< λ_e
  double expectation_rate = 0.5;  ///< probability that a batch reads the expectation instead of samples
  double reward_weight = 1;       ///< λ_r
  double temperature = 1;         ///< initial τ
  double temperature_decay = 0;   ///< r: τ e^{−rt} at step t, at least temperature_least (Jang et al. 2017)
  double temperature_least = 0.1;
  std::string evaluate = "argmax";

  /// Their keys beside the others of `attention:`.
  std::vector<Field> fields();
  /// A key that says nothing where it stands, or not what it can: with this read, or with this estimator.
  std::optional<std::string> contradiction_of(std::string const& read) const;
  /// τ after this many updates.
  double temperature_at(Index step) const;
  bool operator==(EstimatorSettings const&) const = default;
  /// Whether all choices are summed over, up to 1024 sequences per pass.
  bool sums_over_choices() const { return estimator == "enumerate" || estimator == "marginal"; }
};

/// The choices of hard attention in one forward pass, layer by layer.
struct HardChoices {
  /// given: by codes, a digit per choice; one: a sequence's code is its choice at every query.
  enum class Mode { sample, expectation, given, one };
  /// The positions whose logits depend on a choice at query i: i alone, i and later ones, or all.
  enum class Reach { position, later, sequence };
  /// The choices of one call, per sequence, head and query.
  struct Made {
    Tensor probability;  ///< a_J, [B, H, n]; 1 for a query without visible keys
    Tensor entropy;      ///< −Σ_j a_j log a_j, [B, H, n]
    Reach reach;
  };

  Mode mode = Mode::sample;
  std::vector<Made> made;
  /// For Mode::given: a number per sequence, whose mixed-radix digits (a digit per choice, with the number of available keys as radix) are
  /// the choices; the quotient after the choices made so far. For Mode::one: the choice.
  std::vector<Index> codes;
  double combinations = 1;  ///< the product of the radices so far, the number of codes; for Mode::one, the number of keys
};

/// The rows of some sequences, kept while these are read token by token; for a single sequence in an array with spare room, so that reading
/// T tokens copies each row about once instead of T times.
class GrowingRows {
 public:
  GrowingRows() = default;
  GrowingRows(GrowingRows&&) = default;
  GrowingRows& operator=(GrowingRows&&) = default;  // not copyable: both would write into one array

  /// Appends `fresh` [B, n, width] and returns all rows, [B, so far + n, width], a constant to the graph that, for a single sequence,
  /// shares the kept array. `sees` > 0: drops all rows before it but the last sees − 1, and with time their memory. Earlier results stay
  /// unchanged. Throws Error for another number of sequences, another width or dtype, or rows with gradients.
  Tensor append(Tensor const& fresh, Index sees = 0);
  /// How many rows were dropped.
  Index dropped() const { return dropped_; }
  /// Continues with these sequences, in this order; rows are copied at the next append.
  void keep(std::span<Index const> sequences);

 private:
  Tensor room_;                                // [B, capacity, width]
  Index first_ = 0, count_ = 0, dropped_ = 0;  // rows first_ … first_ + count_ − 1 of it are kept
  std::vector<Index> going_;                   // indices of the sequences to continue
};

/// A memory's keys [B, m, G·d] and values [B, m, G·d_v], as attention reads them, and a forget gate's log factors by position, [B, m, H].
struct Projected {
  Tensor key, value, forget = {};

  /// Of these sequences, in this order.
  Projected chosen(std::span<Index const> sequences) const;
};

/// Keys and values of the tokens already read, one entry per layer, so that a decoder reads each token once; and those of the memory that
/// it attends to, so that it is projected once.
struct KeyValueCache {
  struct Layer {
    GrowingRows key, value, forget;  ///< as in Projected
    std::optional<Projected> memory = {};
    Tensor query_tail = {}, key_tail = {}, value_tail = {};  ///< the last inputs of their convolutions: [B, w − 1, ·]
    Tensor state = {}, normaliser = {};                      ///< of linear attention: [B, H, d, e] and [B, H, d, 1]
  };
  std::vector<Layer> layers;
  Index past = 0;  ///< number of tokens read: the position of the next one

  /// Continues with these sequences, in this order; keep_memory(): with their memory.
  void keep(std::span<Index const> sequences);
  void keep_memory(std::span<Index const> sequences);
};

/// The batch parts of an attention's queries and keys: "inputs", "source"; "": none.
struct AttentionParts {
  std::string queries = "inputs", keys = "inputs";
  Index across = 0;  ///< picture fields (keys) per row; 0: keys are a sequence
};

/// The computation of an attention layer in one call: for all queries, or for those of a decoder's step.
struct AttentionStep {
  Tensor scores;          ///< e_ij with the position's bias, for all keys, visible or not: [B, H, n, m]
  Tensor weights;         ///< a_ij, before a hard read and dropout: [B, H, n, m]
  Visibility visibility;  ///< its offset is the position of the first query; keys begin at position 0; those that a cache has
                          ///< dropped have scores, weights and keys of 0
  Tensor query, key;      ///< after rotation: [B, n, H·d], [B, m, H·d]
  AttentionParts of;
  Tensor rows = {};                   ///< statistics of each query's row (autograd/attention/row_statistics.hpp): [B, H, n, row_statistics]
  Tensor log_decay = {}, state = {};  ///< of linear attention, which has no scores: g [B, T, H] or [B, T, H·d], and S_T [B, H, d, e]
};

/// The attention of a layer in a pass, part of the graph, with gradients if the pass is recorded. What was not requested is undefined. A
/// decoder's steps are concatenated along the queries; keys that a step did not have yet have weight 0.
struct AttentionRecord {
  std::string layer;  ///< the name of its module: "blocks.0.attention"
  AttentionParts of;
  Visibility visibility;              ///< of its first step
  Index heads = 0;                    ///< H
  Tensor scores = {};                 ///< as in AttentionStep
  Tensor weights = {};                ///< likewise, or their mean over the heads: [B, n, m]
  Tensor query = {}, key = {};        ///< likewise
  std::vector<Tensor> rows = {};      ///< likewise, one per pass
  std::vector<Tensor> steps = {};     ///< the scores of each step, which have gradients if `scores` is a copy of several
  Tensor gradient = {};               ///< ∂L/∂scores, if computed: [B, H, n, m]
  Tensor log_decay = {}, state = {};  ///< as in AttentionStep
};

/// Records the attention of one or several passes, as far as requested. Only statistics of rows are available from the fused kernels;
/// anything else makes attention use its reference.
class AttentionRecorder {
 public:
  struct RecorderOptions {
    bool weights = false, scores = false;
    bool rows = false;             ///< with weights: over all visible keys; alone: over those in the align's window
    bool inputs = false;           ///< queries and keys
    bool mean_over_heads = false;  ///< of the weights, only their mean over the heads
    bool join_passes = false;      ///< one record per module for all passes; else a module that is used twice has two
    std::function<bool(AttentionParts const&)> only_layers = {};                            ///< records these layers only
    std::function<void(std::string const& layer, AttentionStep const& step)> instead = {};  ///< is called, and nothing kept
  };
  /// `next`: also records the same pass.
  explicit AttentionRecorder(RecorderOptions options, AttentionRecorder* next = nullptr) : options_(std::move(options)), next_(next) {}

  bool wants_weights() const {
    return options_.weights || options_.scores || options_.inputs || (next_ != nullptr && next_->wants_weights());
  }
  bool wants_rows() const { return (options_.rows && !options_.weights) || (next_ != nullptr && next_->wants_rows()); }
  void add(std::string const& layer, AttentionStep const& step);
  /// In the order of the pass.
  std::vector<AttentionRecord> records() const;

 private:
  struct Steps {
    AttentionRecord record;
    std::vector<Tensor> weights = {}, queries = {};
    std::vector<std::vector<Tensor>> rows = {};  // one per pass
  };

  RecorderOptions options_;
  AttentionRecorder* next_;
  std::vector<Steps> layers_;
};

/// Callbacks for intermediate results of a model. A layer has the name of its module ("blocks.0").
struct Observer {
  AttentionRecorder* attention = nullptr;
  std::function<void(std::string const& layer, Tensor const& x)> stream = {};  ///< the residual stream after a block: [B, T, width]
  /// The contexts of all heads of an attention layer, [B, n, H·d_v], before gate and output projection; returns what is read instead.
  std::function<Tensor(std::string const& layer, Tensor const& contexts)> contexts = {};
  /// A recurrent cell's output after each step [B, width], in the order of computation; for sequences that have ended, the last one. An
  /// observed cell is computed step by step.
  std::function<void(std::string const& cell, std::span<Tensor const> outputs)> recurrence = {};
};

/// Settings of a training pass.
struct TrainingPass {
  std::optional<Stream> noise;  ///< dropout's stream, different for every step and micro-batch; nothing: not training
  Index step = 0;               ///< number of updates made before
  bool recompute = false;       ///< keep only the input of each block, and recompute the block for its gradient (Chen et al. 2016)
};

/// Settings of a decoding or evaluation pass.
struct DecodingPass {
  KeyValueCache* cache = nullptr;  ///< of the tokens read so far, for stepwise decoding
  Stream choosing{0, "choices"};   ///< hard attention's stream, if it samples
  /// Numbers of the sequences, which with `choosing` determine hard attention's choices there; empty: their positions in the batch.
  std::vector<std::uint64_t> sequences = {};
};

/// Observers of a pass.
struct ObservedPass {
  Observer const* observer = nullptr;
  HardChoices* hard_choices = nullptr;  ///< receives hard attention's choices
};

/// The arguments of a forward pass besides its input.
struct Pass {
  TrainingPass training = {};
  DecodingPass decoding = {};
  ObservedPass watching = {};

  /// The number of a sequence. Throws Error if there are numbers, but none for it.
  std::uint64_t sequence(Index row) const;
  /// Dropout in training, with a stream named by the path of its use ("blocks.0.attention.weights"); otherwise x itself.
  Tensor dropout(Tensor const& x, double rate, std::string const& stream) const {
    return drops(rate) ? heed::dropout(x, rate, training.noise->child(stream)) : x;
  }
  bool drops(double rate) const { return training.noise && rate > 0; }
  AttentionRecorder* attention() const { return watching.observer != nullptr ? watching.observer->attention : nullptr; }
  bool watches_attention() const { return attention() != nullptr && attention()->wants_weights(); }
  bool watches_rows() const { return attention() != nullptr && attention()->wants_rows(); }
  /// What is read instead of an attention layer's contexts: as Observer::contexts says.
  Tensor read_instead(std::string const& layer, Tensor const& contexts) const {
    return watching.observer != nullptr && watching.observer->contexts ? watching.observer->contexts(layer, contexts) : contexts;
  }
  bool watches_stream() const { return watching.observer != nullptr && watching.observer->stream; }
  bool watches_recurrence() const { return watching.observer != nullptr && watching.observer->recurrence; }
};

/// The number of choices in a pass so far; sets the reach of those from number `first` on.
std::size_t choices_made(Pass const& pass);
void set_reach(Pass const& pass, std::size_t first, HardChoices::Reach reach);

/// f(inputs, pass); with pass.training.recompute it is run again for its gradient instead of keeping intermediate results (see
/// checkpoint()). The choices made in it are returned beside its result, so that their probabilities have gradients. The result is [B, n,
/// …], and the n are also the queries of the choices. Throws Error for given choices (enumerate, marginal).
Tensor recomputed_block(std::function<Tensor(std::vector<Tensor> const& inputs, Pass const& pass)> const& f,
                        std::vector<Tensor> const& inputs, Pass const& pass);

}  // namespace heed
