#pragma once

#include <concepts>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nn/batch.hpp"
#include "nn/parameters.hpp"
#include "nn/pass.hpp"
#include "nn/settings.hpp"

namespace heed {

/// A cross entropy that a model is trained on, with the name of its targets in the batch.
struct Term {
  std::string name = "token";
  std::string targets = "targets";  ///< [B, …] int64 in the batch; −1 does not count
  double weight = 1;
  std::vector<double> of_classes = {};  ///< factors of the targets by class; empty: 1. The mean is over the sum of the factors
};

/// Logits [B, …, V], or the inputs of a linear layer for them, x [B, …, in] · weightᵀ + bias with weight [V, in], bias [V] or undefined:
/// logits of a large vocabulary need not be held whole. If the weight is undefined, x are the logits.
struct LinearHead {
  Tensor x, weight = {}, bias = {};

  Tensor logits() const;
  /// Calls `see` with the logits [rows, V] of the positions first, first + 1, …, all in order, logits_at_once() at a time.
  void each_logits(std::function<void(Index first, Tensor const& logits)> const& see) const;
};

/// A model's output for one term.
struct Prediction {
  Term term;
  LinearHead head;
};

/// A model's output for a batch: the loss is Σ weight · cross entropy of each prediction, plus the penalty.
struct Outcome {
  std::vector<Prediction> predictions;
  Tensor penalty = {};  ///< a mean over the batch, []; undefined: none
};

/// Denominators of a step's means: the counted targets of each term, and sequences.
struct Counts {
  std::vector<double> targets;
  double rows = 0;
  Counts& operator+=(Counts const& more);
};
/// The number of targets other than −1, or the sum of their classes' weights.
double counted(Tensor const& targets, std::vector<double> const& of_classes = {});

class Decoding;

/// A trainable model: parameters, and logits for a batch.
class Model {
 public:
  virtual ~Model() = default;

  /// The terms of its loss, in the order of every outcome.
  virtual std::vector<Term> terms() const { return {Term()}; }
  /// A pass over a batch.
  virtual Outcome run(Batch const& batch, Pass const& pass) const = 0;

  /// The logits of the first prediction, whole.
  Tensor logits(Batch const& batch, Pass const& pass) const { return run(batch, pass).predictions.front().head.logits(); }
  /// This batch's contribution to a step's counts.
  Counts counts(Batch const& batch) const;
  /// This batch's share of the loss of a step whose total counts are `counts`; undefined: this batch is the whole step.
  Tensor loss(Batch const& batch, Pass const& pass, double label_smoothing = 0, Counts const& counts = {}) const;
  /// LinearHead::each_logits of the first prediction.
  void each_logits(Batch const& batch, Pass const& pass, std::function<void(Index first, Tensor const& logits)> const& see) const {
    run(batch, pass).predictions.front().head.each_logits(see);
  }
  /// Throws Error, beginning with the key concerned, for data that it cannot be trained on.
  virtual void check(Batch const& batch) const { static_cast<void>(batch); }
  /// The longest sequence of tokens that it was made for.
  virtual Index context() const = 0;
  virtual Index vocabulary() const = 0;
  /// The width of the residual stream or the state, used by the noam schedule.
  virtual Index width() const = 0;
  /// The longest sequence that it can read at all; nothing: any.
  virtual std::optional<Index> limit() const { return std::nullopt; }
  /// Starts token-by-token decoding: nn/decode.hpp. `given`: the input of a target, such as a source; without parts for a model that
  /// continues a text. Of the pass only pass.decoding.choosing and .sequences are used. Null: not supported for this input.
  virtual std::unique_ptr<Decoding> decode(Batch const& given, Pass const& pass) const;
  /// The gradient estimator of its random choices; null: it makes none.
  virtual EstimatorSettings const* estimator() const { return nullptr; }
  /// Approximate floating-point operations per token of a forward pass.
  virtual double flops_per_token() const = 0;
};

/// A part of a batch that a model reads, and the view that makes it if the data lack it; "": there is none.
struct InputPart {
  std::string name, view = {};
  bool picture = false;                     ///< whether it is a picture
  Settings const* view_settings = nullptr;  ///< the model's settings for the view; null: it has none
};

/// The parts that a kind of model reads: fixed, or depending on its settings.
class InputParts {
 public:
  InputParts(std::initializer_list<InputPart> always) : of_([parts = std::vector(always)](Settings const&) { return parts; }) {}
  template <std::invocable<Settings const&> F>
  InputParts(F by_settings) : of_(std::move(by_settings)) {}

  std::vector<InputPart> operator()(Settings const& settings) const { return of_(settings); }

 private:
  std::function<std::vector<InputPart>(Settings const&)> of_;
};

/// A kind of model, declared beside its definition: `model: {kind: gpt, …}`.
struct ModelKind {
  std::string name, help;
  InputParts reads;
  std::function<std::shared_ptr<Settings>()> settings;
  std::function<std::unique_ptr<Model>(Parameters& parameters, Settings const& settings, Signature const& data)> make;
};
/// The kind of a model M with settings S.
template <class M, class S>
ModelKind model_of(std::string name, std::string help, InputParts reads) {
  return {std::move(name), std::move(help), std::move(reads), [] { return std::make_shared<S>(); },
          [](Parameters& parameters, Settings const& settings, Signature const& data) {
            return std::make_unique<M>(parameters, dynamic_cast<S const&>(settings), data);
          }};
}
/// Throws Error for an unknown kind.
ModelKind const& model_kind(std::string const& name);
/// The parts that a model with these settings reads. Throws Error for an unknown kind.
std::vector<InputPart> input_parts_of(Choice const& choice);
/// `model:` in YAML.
Choice model_choice();
/// A model for data with this signature. Throws Error for an unknown kind, and for data that lack a part it reads.
std::unique_ptr<Model> make_model(Choice const& choice, Parameters& parameters, Signature const& data);

}  // namespace heed
