#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autograd/operations.hpp"
#include "nn/parameters.hpp"
#include "nn/pass.hpp"
#include "nn/settings.hpp"

/// Attention = score → align → read. A variant is one choice for each step; a choice is one short file under score/, align/ or read/,
/// which declares itself (formula, paper, cost) and so is known to YAML, to `heed list attention` and to the tests.
namespace heed {

/// `attention:` in YAML: a name for a whole variant, or its parts.
struct AttentionSettings : Settings {
  std::string score = "scaled_dot";
  std::string scale = "rsqrt";  ///< scaled_dot's s: rsqrt (1/√d), inverse (1/d), none (1), learned (per head, from 1/√d), or a number
  std::string align = "softmax";
  std::string read = "soft";

  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
  bool from_word(std::string_view word) override;
  std::vector<std::string> short_words() override;
};

/// Extents that the parameters of a step depend on.
struct HeadShape {
  std::int64_t heads;
  std::int64_t width;    ///< d_k: of a query and a key
  std::int64_t context;  ///< the most keys that a model is trained with
};

/// Scores: e_ij of query i and key j.
class Score {
 public:
  virtual ~Score() = default;
  /// query [B, H, n, d], key [B, H, m, d] → [B, H, n, m].
  virtual Tensor operator()(Tensor const& query, Tensor const& key) const = 0;
  /// s, if e_ij = s · q_i·k_j with a constant s: what the fused kernel for dot products takes.
  virtual std::optional<double> constant_dot() const { return std::nullopt; }
};

/// Weights a_ij from scores.
class Align {
 public:
  virtual ~Align() = default;
  /// scores [B, H, n, m] → weights [B, H, n, m], 0 where a key is not visible; a row that sees nothing is zeros.
  virtual Tensor operator()(Tensor const& scores, Visibility const& visibility) const = 0;
  virtual bool is_softmax() const { return false; }
};

/// Contexts c_i from weights and values.
class Read {
 public:
  virtual ~Read() = default;
  /// weights [B, H, n, m], value [B, H, m, d_v] → [B, H, n, d_v].
  virtual Tensor operator()(Tensor const& weights, Tensor const& value) const = 0;
  virtual bool is_expectation() const { return false; }
};

/// A choice for one step, as declared beside its definition.
template <class Step>
struct StepKind {
  std::string name, formula, paper, cost;
  std::function<std::unique_ptr<Step>(Scope const& scope, AttentionSettings const& settings, HeadShape const& shape)> make;
};

/// All declared choices of a step, by name; Declared<Score> const x{{…}} adds one.
template <class Step>
std::vector<StepKind<Step>>& step_kinds();
template <class Step>
struct Declared {
  explicit Declared(StepKind<Step> kind) { step_kinds<Step>().push_back(std::move(kind)); }
};

/// A short name and the parts that it stands for.
struct AttentionName {
  std::string name, score, align, read;
};
std::vector<AttentionName> const& attention_names();

}  // namespace heed
