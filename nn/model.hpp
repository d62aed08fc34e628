#pragma once

#include <concepts>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nn/batch.hpp"
#include "nn/parameters.hpp"
#include "nn/pass.hpp"
#include "nn/settings.hpp"
#include "nn/signature.hpp"

namespace heed {

/// A cross entropy that a model is trained on: of the targets that a batch holds under a name.
struct Term {
  std::string name = "token";
  std::string targets = "targets";  ///< [B, …] int64 in the batch; −1 does not count
  double weight = 1;
};

/// Logits [B, …, V], or what a linear layer makes them of, x [B, …, in] · weightᵀ + bias with weight [V, in], bias [V] or undefined: the
/// logits of a large vocabulary need never be whole. A weight that is undefined: x are the logits.
struct LinearHead {
  Tensor x, weight = {}, bias = {};

  Tensor logits() const;
  /// Calls `see` with the logits [rows, V] of the places first, first + 1, …, all places in order: as many at once as logits_at_once()
  /// says.
  void each_logits(std::function<void(std::int64_t first, Tensor const& logits)> const& see) const;
};

/// What a model says of one term's targets.
struct Prediction {
  Term term;
  LinearHead head;
};

/// What a pass makes of a batch: the loss is Σ weight · cross entropy of each prediction, and the penalty.
struct Outcome {
  std::vector<Prediction> predictions;
  Tensor penalty = {};  ///< a mean over the rows, []; undefined: none
};

/// What the means of a step are over: the targets of each term that count, and rows.
struct Counts {
  std::vector<double> targets;
  double rows = 0;
  Counts& operator+=(Counts const& more);
};
/// How many targets are not −1.
double counted(Tensor const& targets);

class Decoding;

/// What can be trained: parameters, and logits for a batch.
class Model {
 public:
  virtual ~Model() = default;

  /// What it is trained on: the terms of every outcome, in their order.
  virtual std::vector<Term> terms() const { return {Term()}; }
  /// A pass over a batch.
  virtual Outcome run(Batch const& batch, Pass const& pass) const = 0;

  /// The logits of the first prediction, whole.
  Tensor logits(Batch const& batch, Pass const& pass) const { return run(batch, pass).predictions.front().head.logits(); }
  /// What this batch adds to the counts of a step.
  Counts counts(Batch const& batch) const;
  /// This batch's part of a step's loss, all of whose counts are `counts`; undefined: of a step of this batch alone.
  Tensor loss(Batch const& batch, Pass const& pass, double label_smoothing = 0, Counts const& counts = {}) const;
  /// LinearHead::each_logits of the first prediction.
  void each_logits(Batch const& batch, Pass const& pass, std::function<void(std::int64_t first, Tensor const& logits)> const& see) const {
    run(batch, pass).predictions.front().head.each_logits(see);
  }
  /// Throws Error for rows that it cannot be trained on, a message that begins with the key it concerns.
  virtual void check(Batch const& batch) const { static_cast<void>(batch); }
  /// The longest row of tokens that it was made for.
  virtual std::int64_t context() const = 0;
  virtual std::int64_t vocabulary() const = 0;
  /// Of the residual stream or the state: what the noam schedule divides by.
  virtual std::int64_t width() const = 0;
  /// The longest row that it can read at all; nothing: any.
  virtual std::optional<std::int64_t> limit() const { return std::nullopt; }
  /// Begins to write, token by token: nn/decode.hpp. `given`: what it writes of, such as a source; without parts: nothing, for a model that
  /// continues a text. Of the pass there count `choosing` and `sequences`. Null: it cannot begin from that.
  virtual std::unique_ptr<Decoding> decode(Batch const& given, Pass const& pass) const;
  /// How gradients through its random choices are estimated; null: it makes none.
  virtual EstimatorSettings const* estimator() const { return nullptr; }
  /// Floating-point operations of one forward pass over a token, about.
  virtual double flops_per_token() const = 0;
};

/// A part of a batch that a model reads, and the view of data without it that makes it; "": there is none.
struct Need {
  std::string name, view = {};
  bool picture = false;           ///< its rows are pictures
  Settings const* how = nullptr;  ///< settings of the view, which are the model's; null: it has none
};

/// What a kind of model reads: always the same, or as its settings say.
class Reads {
 public:
  Reads(std::initializer_list<Need> always) : of_([needs = std::vector(always)](Settings const&) { return needs; }) {}
  template <std::invocable<Settings const&> F>
  Reads(F by_settings) : of_(std::move(by_settings)) {}

  std::vector<Need> operator()(Settings const& settings) const { return of_(settings); }

 private:
  std::function<std::vector<Need>(Settings const&)> of_;
};

/// A kind of model, declared beside its definition: `model: {kind: gpt, …}`.
struct ModelKind {
  std::string name, help;
  Reads reads;
  std::function<std::shared_ptr<Settings>()> settings;
  std::function<std::unique_ptr<Model>(Parameters& parameters, Settings const& settings, Signature const& data)> make;
};
/// Throws Error for a kind that is not declared.
ModelKind const& model_kind(std::string const& name);
/// What a model of these settings reads. Throws Error for a kind that is not declared.
std::vector<Need> needs_of(Choice const& choice);
/// `model:` in YAML.
Choice model_choice();
/// A model for what the data give. Throws Error for a kind that is not declared, and for data that lack what it reads.
std::unique_ptr<Model> make_model(Choice const& choice, Parameters& parameters, Signature const& data);

}  // namespace heed
