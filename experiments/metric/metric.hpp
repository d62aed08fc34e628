#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/metric/info.hpp"

namespace heed {

class Batch;
class Dataset;
class Model;
class EvaluatedBatch;
class Tensor;
struct Row;

/// A metric of held-out rows, gathered batch by batch.
class Metric {
 public:
  virtual ~Metric() = default;
  /// Is shown the logits [n, V] of a batch's places first … first + n − 1, all rows' places one after the other, before the batch is added:
  /// those of large vocabularies are never whole.
  virtual void observe(Batch const& batch, std::int64_t first, Tensor const& logits) {
    static_cast<void>(batch), static_cast<void>(first), static_cast<void>(logits);
  }
  virtual void add(EvaluatedBatch const& seen) = 0;
  /// Sets PREFIX.NAME of what was added: NaN if nothing of it counts, but for a name with a *, which then has no value.
  virtual void write(Row& row, std::string const& prefix) const = 0;
};

/// A kind of metric, declared in a file of its own: `heed run` writes it as validation.NAME, and of averaged weights as
/// validation.ema.NAME.
struct MetricKind {
  MetricInfo info;
  std::optional<int> always = {};  ///< every evaluation of a training has it, in this order; nothing: one that asks for it
  /// Why there is no such metric of the data and the model, as "the data pose no task"; nothing: there is. Null: there always is.
  std::function<std::optional<std::string>(Dataset const& data, Model const& model)> unavailable = {};
  std::function<std::unique_ptr<Metric>(Dataset const& data)> make;

  /// Those that training always has in their order, then the others by name.
  std::pair<int, std::string_view> order() const { return {always.value_or(std::numeric_limits<int>::max()), info.name}; }
  /// Both metrics that a run writes of it.
  void declare() const {
    for (auto const& [before, of] : {std::pair("validation.", ""), std::pair("validation.ema.", "; of averaged weights")})
      Declared<MetricInfo>({before + info.name, info.unit, info.better, info.help + of, info.bounds});
  }
};
inline std::string const& name_of(MetricKind const& kind) { return kind.info.name; }

}  // namespace heed
