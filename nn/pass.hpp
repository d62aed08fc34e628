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
#include "nn/hard_choices.hpp"

namespace heed {

/// Rows of some sequences that are kept while these are read; of one sequence in an array with room for more: reading T tokens one by one
/// copies few rows twice, not all of them T times.
class GrowingRows {
 public:
  GrowingRows() = default;
  GrowingRows(GrowingRows&&) = default;
  GrowingRows& operator=(GrowingRows&&) = default;  // and no copies: both would write into one array

  /// The rows so far and behind them `fresh` [B, n, width]: [B, so far + n, width], a constant to the graph that, of one sequence, shares
  /// the kept array. What was returned before stays as it was. Throws Error for another number of sequences, another width or dtype, or
  /// rows with gradients.
  Tensor append(Tensor const& fresh);
  /// Goes on with the sequences of these numbers, in this order; they are copied when something is appended.
  void keep(std::span<std::int64_t const> sequences);

 private:
  Tensor room_;  // [B, capacity, width]
  std::int64_t count_ = 0;
  std::vector<std::int64_t> going_;  // those of its sequences that go on
};

/// A memory's keys and values, [B, m, G·d] and [B, m, G·d_v], as attention reads them, and the logarithms of what is left of older
/// places' scores at each, [B, m, H], if they fade.
struct Projected {
  Tensor key, value, forget = {};
};

/// Keys and values of the tokens already read, one entry a layer, so that a decoder reads each token once; and those of what it attends to
/// beside them, so that they are projected once.
struct KeyValueCache {
  struct Layer {
    GrowingRows key, value, forget;  ///< as Projected
    std::optional<Projected> memory = {};
  };
  std::vector<Layer> layers;
  std::int64_t past = 0;  ///< tokens read: the position of the next one

  /// Goes on with the sequences of these numbers, in this order; keep_memory(): with what these attend to.
  void keep(std::span<std::int64_t const> sequences);
  void keep_memory(std::span<std::int64_t const> sequences);
};

/// The parts of a batch of which an attention's queries and keys are the places: "inputs", "source"; "": of none.
struct AttentionParts {
  std::string queries = "inputs", keys = "inputs";
  std::int64_t across = 0;  ///< keys that are fields of a picture, row by row: how many in a row; 0: they are a sequence
};

/// What an attention layer computes in one call: of all its queries, or of those of a decoder's step.
struct AttentionStep {
  Tensor scores;          ///< e_ij with the position's bias, of all keys, visible or not: [B, H, n, m]
  Tensor weights;         ///< a_ij, before a hard read chooses and before dropout: [B, H, n, m]
  Visibility visibility;  ///< its offset is the place of the first query; keys begin at place 0
  Tensor query, key;      ///< rotated by their position: [B, n, H·d], [B, m, H·d]
  AttentionParts of;
  Tensor rows = {};  ///< statistics of each query's row (autograd/attention/row_statistics.hpp): [B, H, n, row_statistics]
};

/// What an attention layer did in a pass: parts of the graph, so that they have gradients if the pass is recorded. What was not asked for
/// is undefined. The steps of a decoder are one after the other on the queries' axis; keys that a step did not have yet have weight 0.
struct AttentionRecord {
  std::string layer;  ///< the name of its module: "blocks.0.attention"
  AttentionParts of;
  Visibility visibility;           ///< of its first step
  std::int64_t heads = 0;          ///< H
  Tensor scores = {};              ///< as in AttentionStep
  Tensor weights = {};             ///< likewise; their mean over the heads: [B, n, m]
  Tensor query = {}, key = {};     ///< likewise
  std::vector<Tensor> rows = {};   ///< likewise, of one pass after the other
  std::vector<Tensor> steps = {};  ///< the scores of each step, which have gradients where `scores` copies several
  Tensor gradient = {};            ///< ∂L/∂scores, if somebody has it: [B, H, n, m]
};

/// Keeps of a pass, or of several, what attention layers did, as far as it is asked for. Where it is asked for more than statistics of
/// rows, attention goes by its reference; they alone are measured on the way, by the kernels too.
class AttentionRecorder {
 public:
  struct Keeps {
    bool weights = false, scores = false;
    bool rows = false;    ///< with weights: of all visible keys; alone: of those within the align's window
    bool inputs = false;  ///< queries and keys
    bool means = false;   ///< of the weights only their mean over the heads
    bool passes = false;  ///< calls of one name are one record, whatever pass they are of; else a module that is used twice is two
    std::function<bool(AttentionParts const&)> only = {};  ///< of these layers alone
  };
  /// `next`: records the same pass.
  explicit AttentionRecorder(Keeps keeps, AttentionRecorder* next = nullptr) : keeps_(std::move(keeps)), next_(next) {}

  bool wants_weights() const { return keeps_.weights || keeps_.scores || keeps_.inputs || (next_ != nullptr && next_->wants_weights()); }
  bool wants_rows() const { return (keeps_.rows && !keeps_.weights) || (next_ != nullptr && next_->wants_rows()); }
  void add(std::string const& layer, AttentionStep const& step);
  /// In the order of the pass.
  std::vector<AttentionRecord> records() const;

 private:
  struct Steps {
    AttentionRecord record;
    std::vector<Tensor> weights = {}, queries = {};
    std::vector<std::vector<Tensor>> rows = {};  // of each pass
  };

  Keeps keeps_;
  AttentionRecorder* next_;
  std::vector<Steps> layers_;
};

/// Is shown what a model computes on its way. A layer has the name of its module ("blocks.0").
struct Observer {
  AttentionRecorder* attention = nullptr;
  std::function<void(std::string const& layer, Tensor const& x)> stream = {};  ///< the residual stream after a block: [B, T, width]
  /// A recurrent cell's output after each step [B, width], in the order in which they are made; of rows that are not at work, as before. A
  /// cell that is watched goes step by step.
  std::function<void(std::string const& cell, std::span<Tensor const> outputs)> recurrence = {};
};

/// What a pass of training has beside others.
struct TrainingPass {
  std::optional<Stream> noise;  ///< where dropout draws from; a stream of its own for every step and micro-batch; nothing: no training
  std::int64_t step = 0;        ///< updates made before
  bool recompute = false;       ///< keep only what enters each block, and run it again for its gradient (Chen et al. 2016)
  bool by_rows = false;         ///< MLPs go some rows at a time: for graphs that are differentiated twice
};

/// What a pass has that decodes or evaluates.
struct DecodingPass {
  KeyValueCache* cache = nullptr;  ///< of what was read, step by step
  Stream choosing{0, "choices"};   ///< where hard attention draws from, if it samples
  /// A number for each sequence, which with `choosing` says what hard attention chooses there, wherever in a batch it stands; none: its
  /// place.
  std::vector<std::uint64_t> sequences = {};
};

/// Who is told what a pass computes on its way.
struct WatchedPass {
  Observer const* observer = nullptr;
  HardChoices* hard_choices = nullptr;  ///< told what hard attention chooses
};

/// What a forward pass carries through a model beside its input.
struct Pass {
  TrainingPass training = {};
  DecodingPass decoding = {};
  WatchedPass watching = {};

  /// The number of a batch's row. Throws Error if there are numbers, but none for it.
  std::uint64_t sequence(std::int64_t row) const;
  /// Dropout while training, keyed by the place that asks ("blocks.0.attention.weights"); x itself otherwise.
  Tensor dropout(Tensor const& x, double rate, std::string const& place) const {
    return drops(rate) ? heed::dropout(x, rate, training.noise->child(place)) : x;
  }
  bool drops(double rate) const { return training.noise && rate > 0; }
  AttentionRecorder* attention() const { return watching.observer != nullptr ? watching.observer->attention : nullptr; }
  bool watches_attention() const { return attention() != nullptr && attention()->wants_weights(); }
  bool watches_rows() const { return attention() != nullptr && attention()->wants_rows(); }
  bool watches_stream() const { return watching.observer != nullptr && watching.observer->stream; }
  bool watches_recurrence() const { return watching.observer != nullptr && watching.observer->recurrence; }
};

}  // namespace heed
