#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "autograd/attention/attention.hpp"
#include "autograd/attention/fused_attention.hpp"
#include "autograd/registry.hpp"
#include "nn/parameters.hpp"
#include "nn/pass.hpp"
#include "nn/settings.hpp"

/// Attention = score → align → read. A variant is one choice for each step; a choice is one short file under score/, align/ or read/,
/// which declares itself (formula, paper, cost) and so is known to YAML, to `heed list attention` and to the tests.
namespace heed {

/// `attention:` in YAML: a name for a whole variant, or its parts.
struct AttentionSettings : Settings {
  std::string score = "scaled_dot";
  std::string scale = "rsqrt";  ///< scaled_dot's s: rsqrt, inverse, none, learned (per head, from 1/√d), power α, or a number
  std::string align = "softmax";
  double window = 10;    ///< D of local_m and local_p
  bool windowed = true;  ///< local_p: false takes the softmax over all visible keys and keeps the Gaussian
  std::string read = "soft";
  std::optional<double> softcap;        ///< c: a score e becomes c tanh(e/c) before a position's bias is added
  std::string query_key_norm = "none";  ///< rms: of each head's queries and keys, before positions rotate them
  bool gate = false;                    ///< contexts times a sigmoid of what asks
  bool forget = false;                  ///< scores fade by learned factors between a key and its query
  bool differential = false;            ///< weights are the difference of two maps
  EstimatorSettings estimator;          ///< of hard; its keys stand beside the others

  /// All that makes it what it is.
  auto tied() const {
    return std::tie(score, scale, align, window, windowed, read, softcap, query_key_norm, gate, forget, differential, estimator);
  }
  /// The first key in use that is of projections of many heads (MultiHead), or "".
  std::string key_of_many_heads() const;

  EstimatorSettings const* estimator_if_hard() const { return read == "hard" ? &estimator : nullptr; }
  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
  bool from_word(std::string_view word) override;
  std::vector<std::string> short_words() override;
};

/// What a scale that is not learned comes to for queries and keys of this width: rsqrt 1/√d, inverse 1/d, none 1, "power 0.25" d^−0.25,
/// a number itself. Nothing for another text.
std::optional<double> fixed_scale(std::string const& scale, double width);

/// Extents that the parameters of a step depend on.
struct HeadShape {
  std::int64_t heads;
  std::int64_t width;          ///< d_k: of a query and a key
  std::int64_t context;        ///< the most keys that a model is trained with
  std::int64_t of_key = 0;     ///< of a key that is not as wide as a query (Compares::any_widths)
  std::int64_t key_heads = 0;  ///< groups of heads that share keys and values; 0: each has its own

  std::int64_t key_width() const { return of_key > 0 ? of_key : width; }
};

/// What a score compares, where nothing else projects its queries and keys.
enum class Compares {
  same_width,   ///< a query and a key of one width, as they are
  any_widths,   ///< of any widths, as they are
  projections,  ///< what a linear map makes of each
};

/// Scores: e_ij of query i and key j.
class Score {
 public:
  virtual ~Score() = default;
  /// Puts the score into a call of the kernels, which has its heads already, and queries [B, n, H·d], keys [B, m, G·d] and values [B, m,
  /// G·d_v] or none: its formulas, what they read beside, and what takes the place of the queries or keys.
  virtual void fill(AttentionForm& form, AttentionInputs& in) const = 0;
  /// The scores alone: query [B, H, n, d], key [B, H, m, d] → [B, H, n, m]; the first query stands at position 0.
  Tensor operator()(Tensor const& query, Tensor const& key) const;
  /// What changes its sign where the score is not smooth, so that finite differences keep away from there: query and key as above, any
  /// shape back. Undefined for a score that is smooth everywhere.
  virtual Tensor kinks(Tensor const& query, Tensor const& key) const { return static_cast<void>(query), static_cast<void>(key), Tensor(); }
};

/// Weights a_ij from scores.
class Align {
 public:
  virtual ~Align() = default;
  /// Likewise: the align's rows, their window and what is around centres. `query` [B, n, H·d]: as it was before the score.
  virtual void fill(AttentionForm& form, AttentionInputs& in, Tensor const& query) const = 0;
  /// scores [B, H, n, m], query [B, H, n, d] → weights [B, H, n, m], 0 where a key is not visible; a row that sees nothing is zeros.
  Tensor operator()(Tensor const& scores, Tensor const& query, Visibility const& visibility) const;
};

/// Contexts c_i from weights a_ij [B, H, n, m] and values: Σ_j a_ij v_j, or of one key alone.
class Read {
 public:
  virtual ~Read() = default;
  /// How the pass's rows are read, each at one key; nothing: the expectation. `weights`: their shape. `place` names the layer. Takes the
  /// digits of choices that are given, so that it is asked once a call.
  virtual std::optional<HardRead> choice(Shape const& weights, Visibility const& visibility, Pass const& pass,
                                         std::string const& place) const = 0;
  /// The same as a composition, of weights a_ij: r_ij with c_i = Σ_j r_ij v_j, likewise. Tells the pass what was chosen.
  Tensor operator()(Tensor const& weights, Visibility const& visibility, Pass const& pass, std::string const& place) const;
  /// Tells the pass's choices how likely those were that a scored read made, and the entropy they were made with: [B, H, n].
  static void tell(Pass const& pass, Visibility const& visibility, Tensor const& probability, Tensor const& entropy);
};

/// A choice for one step, as declared beside its definition.
template <class Step>
struct StepKind {
  std::string name, formula, paper, cost;
  std::string smooth;  ///< where it is differentiable
  std::function<std::unique_ptr<Step>(Scope const& scope, AttentionSettings const& settings, HeadShape const& shape)> make;
  Compares compares = Compares::same_width;  ///< of a score
  bool rows_are_distributions = false;       ///< of an align: not negative, with sums of one
};

using ScoreKind = StepKind<Score>;
using AlignKind = StepKind<Align>;
using ReadKind = StepKind<Read>;

/// A short name and the parts that it stands for.
struct AttentionName {
  std::string name, score, align, read;
};
std::vector<AttentionName> const& attention_names();

}  // namespace heed
