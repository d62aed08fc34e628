#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nn/attention/steps.hpp"
#include "nn/position.hpp"

/// Layers that differ: `model.layer_types`, `model.types` and `model.last_layer`.
namespace heed {

/// Attention settings inside a model that has others: `same`, the model's `attention:`, unless a score or a variant is given.
struct OwnAttentionSettings : AttentionSettings {
  OwnAttentionSettings() { score = "same"; }
  bool is_same() const { return score == "same" && !is_linear(); }
  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
  bool from_word(std::string_view word) override;
  std::vector<std::string> short_words() override;
};

/// What a layer has of its own; the rest is the model's. A word is the name of an attention, or of a section of `types`.
struct LayerSettings : Settings {
  std::string type;                             ///< the word that it was written as; "": a section
  MapOf<LayerSettings> const* types = nullptr;  ///< whose names are words; null: none
  OwnAttentionSettings attention;
  PositionChoice position;
  std::optional<Index> key_heads, mlp_width, sees;

  /// Whether it was given at all.
  bool given() const;
  /// The keys that it has of its own.
  std::vector<std::string> own_keys() const;
  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
  bool from_word(std::string_view word) override;
  std::vector<std::string> short_words() override;
  bool has_own_words() const override { return true; }
  std::string word() override { return type; }
};

struct LayerList : ListOf<LayerSettings> {
  MapOf<LayerSettings> const* types = nullptr;

  Settings& add() override {
    items.emplace_back().types = types;
    return items.back();
  }
};

/// `layer_types:` is repeated over the layers: its length divides their number or, one ending them, one less; `last_layer:` is last.
struct LayerPattern {
  LayerList list;
  MapOf<LayerSettings> types;
  LayerSettings last;

  bool empty() const { return list.items.empty() && !last.given(); }
  std::vector<Field> fields();
  /// As Settings::contradiction(), for this many layers.
  std::optional<std::string> contradiction(Index layers) const;
  /// The settings of a layer, and the dotted key under which they were written. Null if it has none of its own.
  struct Found {
    LayerSettings const* settings;
    std::string key;
  };
  Found of_layer(Index layer, Index layers) const;
  /// "deltanet": the word or the section's name of a layer; "" where it is the model's.
  std::string name_of(Index layer, Index layers) const;
};

}  // namespace heed
