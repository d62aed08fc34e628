#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nn/parameters.hpp"
#include "nn/settings.hpp"

namespace heed {

/// `train.adapters: {rank: 8, scale: 16, on: [query, value]}`; no rank: none.
struct AdapterSettings : Settings {
  std::optional<Index> rank;
  double scale = 16;
  std::vector<std::string> on{"query", "value"};
  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
  bool from_word(std::string_view word) override;
  std::vector<std::string> short_words() override { return {"none"}; }
};

/// Low-rank adapters (Hu et al. 2022): a weight [out, in] is W + (scale/rank) B A with A [rank, in] drawn from N(0, 1/in), B [out, rank] 0
/// at first. W stays as it was, as do all other parameters but those of task heads and segments ("heads.", "segment_embedding."), which
/// are trained whole.
///
/// The model's own weights always hold the merged sum, so that a checkpoint is a model like any other: the gradients of A and B follow from
/// that of the sum G, (scale/rank) Bᵀ G and (scale/rank) G Aᵀ.
class Adapters {
 public:
  /// Throws Error, which begins with the key, for names in `on` that no weight has.
  Adapters(Parameters& model, AdapterSettings const& settings, std::uint64_t seed);

  /// What an optimizer trains: A and B as NAME.down and NAME.up, and the heads' parameters.
  Parameters const& trained() const { return trained_; }
  /// Sets the gradients of A and B from those of the merged weights, which are cleared.
  void take_gradients();
  /// Writes W + (scale/rank) B A into the model; after every update.
  void merge();

  /// What merge() needs besides the trained parameters' values: "adapters.base.NAME", and these values, as copies.
  NamedTensors state() const;
  /// Restores state(), bit by bit; names of others are ignored. Throws Error for what is missing or of another shape.
  void load_state(NamedTensors const& state);

 private:
  struct Adapter {
    std::string name;
    Tensor merged, base, down, up;
  };
  /// Of all adapters, by the names of state().
  NamedTensors tensors() const;

  double factor_;
  Parameters trained_;
  std::vector<Adapter> adapters_;
};

}  // namespace heed
