#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "autograd/attention/attention.hpp"
#include "autograd/attention/fused_attention.hpp"
#include "autograd/registry.hpp"
#include "nn/attention/linear/parts.hpp"
#include "nn/parameters.hpp"
#include "nn/pass.hpp"
#include "nn/settings.hpp"

/// Attention = score → align → read. A variant is a choice for each step; a choice is one short file under score/, align/ or read/, which
/// declares itself (formula, paper, cost) and so is known to YAML, to `heed list attention` and to the tests.
namespace heed {

/// A key of `attention:` that an align has, declared beside it; several may have the same one. Numbers are between 0 and 10⁹.
using StepValue = std::variant<double, bool>;
struct StepKey {
  std::string name, help;
  StepValue usual;
};

struct AttentionSettings;

/// `linear:` inside `attention:`: the name of a variant of linear attention, whose settings it sets; keys beside it change them.
struct LinearName : Settings {
  std::string name;
  AttentionSettings* of = nullptr;

  bool from_word(std::string_view variant) override;
  std::vector<std::string> short_words() override;
  std::string word() override { return name; }
};

/// `attention:` in YAML: the name of a variant, or its parts.
struct AttentionSettings : Settings {
  LinearName linear;  ///< attention without softmax; "": none, and these apply:
  std::string score = "scaled_dot";
  std::string scale = "rsqrt";  ///< scaled_dot's s: rsqrt, inverse, none, learned (per head, from 1/√d), log_length, power α, or a number
  std::string align = "softmax";
  std::string read = "soft";
  std::optional<double> softcap;        ///< c: a score e becomes c tanh(e/c) before a position's bias is added
  std::string query_key_norm = "none";  ///< rms: on each head's queries and keys, before rotation
  bool gate = false;                    ///< contexts times a sigmoid of the query's input
  bool forget = false;                  ///< scores decay by learned factors between key and query
  bool differential = false;            ///< weights are the difference of two attention maps
  EstimatorSettings estimator;          ///< of hard; its keys are on the same level in YAML
  LinearSettings of_linear;             ///< likewise
  std::optional<Index> convolution;     ///< of queries, keys and values over the last w tokens, in linear attention too

  /// The keys that differ from their defaults, without `linear`.
  std::vector<std::string> changed() const;
  /// A key of an align: its value, or the usual one; sets it. Throws std::bad_variant_access for another type.
  double number(std::string const& key) const { return std::get<double>(value_of(key)); }
  bool flag(std::string const& key) const { return std::get<bool>(value_of(key)); }
  void set(std::string const& key, StepValue value) { of_align[key] = value; }
  /// The first key in use that only MultiHead supports, or "".
  std::string key_of_many_heads() const;

  bool is_linear() const { return !linear.name.empty(); }
  EstimatorSettings const* estimator_if_hard() const { return read == "hard" ? &estimator : nullptr; }
  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
  bool from_word(std::string_view word) override;
  std::vector<std::string> short_words() override;

 private:
  StepValue value_of(std::string const& key) const;
  std::optional<std::string> contradiction_of_align() const;
  std::optional<std::string> contradiction_of_linear() const;

  std::map<std::string, StepValue> of_align;  ///< what is not in it is usual
};

/// The value of a fixed scale at this width d: rsqrt 1/√d, inverse 1/d, none 1, "power 0.25" d^−0.25, a number itself; else nothing.
std::optional<double> fixed_scale(std::string const& scale, double width);

/// Sizes that a step's parameters depend on.
struct HeadShape {
  Index heads;
  Index width;              ///< d_k: width of a query and a key
  Index context;            ///< the most keys in training
  Index own_key_width = 0;  ///< width of a key if it differs from the query's (Compares::any_widths); 0: it does not
  Index key_heads = 0;      ///< groups of heads that share keys and values; 0: every head has its own
  double scale_factor = 1;  ///< factor on scaled_dot's s

  Index key_width() const { return own_key_width > 0 ? own_key_width : width; }
};

/// The queries and keys that a score compares if no projection precedes it.
enum class Compares {
  same_width,   ///< a query and a key of one width, unprojected
  any_widths,   ///< of any widths, unprojected
  projections,  ///< linear projections of each
};

/// Scores: e_ij of query i and key j.
class Score {
 public:
  virtual ~Score() = default;
  /// Adds the score to a kernel call, which has its heads, queries [B, n, H·d], keys [B, m, G·d] and values [B, m, G·d_v] or none: its
  /// formulas, their other inputs, and replaced queries or keys. Without any: q_i · k_j.
  virtual void fill(AttentionForm& /*form*/, AttentionInputs& /*in*/) const {}
  /// Values that change sign where the score is not smooth, to keep finite differences away from there: query [B, H, n, d], key
  /// [B, H, m, d], any shape returned. Undefined for a score that is smooth everywhere.
  virtual Tensor kinks(Tensor const& /*query*/, Tensor const& /*key*/) const { return {}; }
};

/// Weights a_ij from scores.
class Align {
 public:
  virtual ~Align() = default;
  /// Adds the align to a kernel call: rows, windows, centres; without any: softmax. `query` [B, n, H·d]: before the score replaced it.
  virtual void fill(AttentionForm& /*form*/, AttentionInputs& /*in*/, Tensor const& /*query*/) const {}
  /// scores [B, H, n, m], query [B, H, n, d] → weights [B, H, n, m], 0 where a key is not visible; a query that sees no key gives zeros.
  Tensor operator()(Tensor const& scores, Tensor const& query, Visibility const& visibility) const;
};

/// Contexts c_i from weights a_ij [B, H, n, m] and values: Σ_j a_ij v_j, or the value of a single key.
class Read {
 public:
  virtual ~Read() = default;
  /// How the pass's queries each read one key; nothing: the expectation. `weights`: their shape. `layer`: the layer's name. Consumes digits
  /// of given choices, so call it once per attention call.
  virtual std::optional<HardRead> choice(Shape const& /*weights*/, Visibility const& /*visibility*/, Pass const& /*pass*/,
                                         std::string const& /*layer*/) const {
    return std::nullopt;
  }
};

/// A choice for one step, declared beside its definition.
template <class Step>
struct StepKind {
  std::string name, formula, paper, cost;
  std::string smooth;  ///< where it is differentiable
  std::function<std::unique_ptr<Step>(Scope const& scope, AttentionSettings const& settings, HeadShape const& shape)> make;
  Compares compares = Compares::same_width;  ///< of a score
  bool rows_are_distributions = false;       ///< of an align: non-negative with sum one
  std::vector<StepKey> keys = {};            ///< of an align
};

using ScoreKind = StepKind<Score>;
using AlignKind = StepKind<Align>;
using ReadKind = StepKind<Read>;
extern template void Registry<ScoreKind>::add(ScoreKind);  // compiled once
extern template void Registry<AlignKind>::add(AlignKind);

/// A variant's name and its parts.
struct AttentionName {
  std::string name, score, align, read;
};
std::vector<AttentionName> const& attention_names();

}  // namespace heed
