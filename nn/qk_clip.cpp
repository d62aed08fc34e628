#include "nn/qk_clip.hpp"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "autograd/attention/row_statistics.hpp"
#include "autograd/kernels/dispatch.hpp"
#include "nn/models/blocks.hpp"

namespace heed {

namespace {

/// Multiplies the rows of head `head`, of so many, of a projection's weight [heads · d, in] and bias [heads · d].
void scale_head(Parameters const& parameters, std::string const& projection, Index head, Index heads, double factor) {
  for (char const* const part : {".weight", ".bias"}) {
    Tensor const* const found = parameters.find(projection + part);
    if (found == nullptr || found->frozen()) continue;
    Tensor parameter = *found;
    kernels::with_real(parameter.dtype(), [&](auto type) {
      using T = decltype(type);
      auto const values = parameter.mutable_data<T>();
      auto const each = values.size() / static_cast<std::size_t>(heads);
      for (T& value : values.subspan(static_cast<std::size_t>(head) * each, each)) value *= static_cast<T>(factor);
    });
  }
}

/// The key of an attention that keeps its scores from being bilinear in queries and keys, with its value; "": they are.
std::string not_bilinear(AttentionSettings const& attention) {
  if (attention.is_linear()) return "attention.linear: " + attention.linear.name;
  if (attention.score != "scaled_dot" && attention.score != "dot") return "attention.score: " + attention.score;
  if (attention.query_key_norm != "none") return "attention.query_key_norm: " + attention.query_key_norm;
  return attention.softcap        ? "attention.softcap"
         : attention.forget       ? "attention.forget"
         : attention.differential ? "attention.differential"
                                  : "";
}

}  // namespace

Observer const* QueryKeyClip::watch(Observer const* next) {
  largest_.clear();
  observer_ = next != nullptr ? *next : Observer();
  recorder_.emplace(
      AttentionRecorder::RecorderOptions{.rows = true,
                                         .instead = [this](auto const& layer, AttentionStep const& step) { note(layer, step.rows); }},
      observer_.attention);
  observer_.attention = &*recorder_;
  return &observer_;
}

void QueryKeyClip::note(std::string const& layer, Tensor const& rows) {
  auto const values = rows.data<double>();
  auto& largest = largest_[layer];
  largest.resize(static_cast<std::size_t>(rows.size(1)), -std::numeric_limits<double>::infinity());
  auto const numbers = static_cast<std::size_t>(row_statistics), queries = static_cast<std::size_t>(rows.size(2));
  for (std::size_t row = 0; row < values.size() / numbers; ++row) {
    double const score = values[row * numbers + static_cast<std::size_t>(RowStatistic::largest_score)];
    double& most = largest[row / queries % largest.size()];
    if (score > most) most = score;  // NaN: a row without keys
  }
}

std::vector<double> QueryKeyClip::largest() const {
  std::vector<double> all;
  for (auto const& [layer, scores] : largest_) all.insert(all.end(), scores.begin(), scores.end());
  return all;
}

void QueryKeyClip::clip(std::vector<double> const& largest) const {
  auto next = largest.begin();
  for (auto const& [layer, scores] : largest_) {
    auto const heads = std::ssize(scores);
    Index const outputs = parameters_.find(layer + ".query.weight")->size(0),
                key_outputs = parameters_.find(layer + ".key.weight")->size(0);
    bool const shared = key_outputs < outputs;
    for (Index head = 0; head < heads; ++head, ++next) {
      if (!(*next > threshold_)) continue;
      double const factor = threshold_ / *next;
      scale_head(parameters_, layer + ".query", head, heads, shared ? factor : std::sqrt(factor));
      if (!shared) scale_head(parameters_, layer + ".key", head, heads, std::sqrt(factor));
    }
  }
}

std::optional<std::string> contradiction_of_qk_clip(Choice const& model) {
  auto const* const stack = dynamic_cast<StackSettings const*>(model.settings.get());
  if (stack == nullptr) return fmt::format("train.qk_clip: a model of kind {} has no heads with W_q and W_k of their own", model.kind);
  auto const refuse = [](std::string const& key) {
    return fmt::format("train.qk_clip: with model.{} scores are not proportional to both W_q and W_k", key);
  };
  for (Index i = 0; i < stack->layers; ++i) {
    StackSettings const layer = stack->of_layer(i);
    if (auto const key = not_bilinear(layer.attention); !key.empty()) return refuse(key);
    if (position_kind(layer.position.kind).acts_on == PositionActsOn::scores) return refuse("position: " + layer.position.kind);
  }
  if (auto const* const memory = stack->memory_attention())
    if (auto const key = not_bilinear(*memory); !key.empty()) return refuse("cross_" + key);
  return std::nullopt;
}

}  // namespace heed
