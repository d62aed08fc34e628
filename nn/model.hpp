#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nn/batch.hpp"
#include "nn/parameters.hpp"
#include "nn/pass.hpp"
#include "nn/settings.hpp"

namespace heed {

/// What a linear layer makes logits of: x [B, T, in] · weightᵀ + bias, weight [V, in], bias [V] or undefined.
struct LinearHead {
  Tensor x, weight, bias;
};

/// A pass, as far as its memory depends on it.
struct PassShape {
  std::int64_t batch, tokens;
  bool recorded = true;    ///< and its gradient taken
  bool trains = true;      ///< with dropout and random choices
  bool watched = false;    ///< an observer keeps scores and weights of all attention, and looks at a layer's in float64
  bool recompute = false;  ///< Pass::recompute
};

class Decoding;

/// What can be trained: parameters, and logits for a batch.
class Model {
 public:
  virtual ~Model() = default;

  /// Scores of the token that is to be predicted at every place (the next one, or the one that was masked): [B, T, V].
  virtual Tensor logits(Batch const& batch, Pass const& pass) const = 0;
  /// The same pass without its last product, where that is a linear layer: so that the logits of a large vocabulary need not be whole.
  virtual std::optional<LinearHead> linear_head(Batch const& batch, Pass const& pass) const;
  /// cross_entropy(logits, targets, label_smoothing, −1, count) of a pass; of a linear head by linear_cross_entropy().
  Tensor loss(Batch const& batch, Pass const& pass, double label_smoothing = 0, std::optional<double> count = std::nullopt) const;
  /// Calls `see` with the logits [rows, V] of the places first, first + 1, … of a pass, all places in order: as many at once as
  /// logits_at_once() says.
  void each_logits(Batch const& batch, Pass const& pass, std::function<void(std::int64_t first, Tensor const& logits)> const& see) const;
  /// Throws Error for rows that it cannot be trained on, a message that begins with the key it concerns.
  virtual void check(Batch const& batch) const { static_cast<void>(batch); }
  /// The longest row of tokens that it was made for.
  virtual std::int64_t context() const = 0;
  virtual std::int64_t vocabulary() const = 0;
  /// Of the residual stream or the state: what the noam schedule divides by.
  virtual std::int64_t width() const = 0;
  /// The longest row that it can read at all; nothing: any.
  virtual std::optional<std::int64_t> limit() const { return std::nullopt; }
  /// Layers that keep keys and values while decoding; 0: the model does not generate text step by step.
  virtual std::size_t cache_layers() const { return 0; }
  /// Begins to decode the batch's source, if it makes targets from sources, token by token; null: it does not. Of the
  /// pass there count `choosing` and `sequences`. nn/decode.hpp.
  virtual std::unique_ptr<Decoding> decode(Batch const& given, Pass const& pass) const;
  /// How gradients through its random choices are estimated; null: it makes none.
  virtual EstimatorSettings const* estimator() const { return nullptr; }
  /// Bytes that a pass holds at its peak, about: what it keeps and works in, logits, loss and gradients on the way included, but not the
  /// parameters and their gradients. What a memory estimate needs; of a model whose parameters have no elements, too.
  virtual double peak_bytes(PassShape const& shape) const = 0;
  /// Floating-point operations of one forward pass over a token, about.
  virtual double flops_per_token() const = 0;
};

/// What a model learns from rows of tokens.
enum class Objective { next_token, masked_tokens };

/// A kind of model, declared beside its definition: `model: {kind: gpt, …}`.
struct ModelKind {
  std::string name, help;
  Objective objective;
  std::function<std::shared_ptr<Settings>()> settings;
  std::function<std::unique_ptr<Model>(Parameters& parameters, Settings const& settings, std::int64_t vocabulary)> make;
};
struct DeclaredModel {
  explicit DeclaredModel(ModelKind kind);
};
std::vector<ModelKind> const& model_kinds();
/// Throws Error for a kind that is not declared.
ModelKind const& model_kind(std::string const& name);
/// `model:` in YAML.
Choice model_choice();
/// Throws Error for a kind that is not declared.
std::unique_ptr<Model> make_model(Choice const& choice, Parameters& parameters, std::int64_t vocabulary);

}  // namespace heed
