#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "autograd/registry.hpp"
#include "experiments/metric/info.hpp"

namespace heed {

class Batch;
class Dataset;
class Model;
class EvaluatedBatch;
class Tensor;
struct Row;

/// A metric of held-out data, accumulated batch by batch.
class Metric {
 public:
  virtual ~Metric() = default;
  /// Receives the logits [n, V] of a batch's positions first … first + n − 1 (all sequences' positions, concatenated) before the batch is
  /// added: those of large vocabularies are never held whole.
  virtual void observe(Batch const& /*batch*/, Index /*first*/, Tensor const& /*logits*/) {}
  virtual void add(EvaluatedBatch const& batch) = 0;
  /// Sets PREFIX.NAME from what was added: NaN if no target counts; a name with a * then has no value.
  virtual void write(Row& row, std::string const& prefix) const = 0;
};

/// A kind of metric, declared in its own file: `heed run` writes it as validation.NAME, for averaged weights as validation.ema.NAME.
struct MetricKind {
  MetricInfo info;
  std::optional<int> always = {};  ///< computed at every evaluation during training, in this order; nothing: only on request
  /// Why the metric does not apply to the data and the model, as "the data pose no task"; nothing: it applies. Null: it always applies.
  std::function<std::optional<std::string>(Dataset const& data, Model const& model)> unavailable = {};
  std::function<std::unique_ptr<Metric>(Dataset const& data)> make;

  /// Those with `always` in their order, then the others by name.
  std::pair<int, std::string_view> order() const { return {always.value_or(std::numeric_limits<int>::max()), info.name}; }
  /// The metrics that a run writes: plain and of averaged weights.
  void declare() const {
    for (auto const& [before, of] : {std::pair("validation.", ""), std::pair("validation.ema.", "; of averaged weights")})
      Declared<MetricInfo>({before + info.name, info.unit, info.better, info.help + of, info.bounds});
  }
};
extern template void Registry<MetricKind>::add(MetricKind);  // compiled once
inline std::string const& name_of(MetricKind const& kind) { return kind.info.name; }

}  // namespace heed
