#pragma once

#include <cmath>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "autograd/attention/row_statistics.hpp"
#include "autograd/registry.hpp"
#include "experiments/metric/info.hpp"
#include "experiments/metric/probe/settings.hpp"
#include "experiments/metric/row.hpp"
#include "nn/model.hpp"
#include "nn/parameters.hpp"
#include "nn/pass.hpp"

/// Probes are recorded beside the loss, under keys that begin with `probe.`. Each is declared in a file of this folder, and so is known to
/// YAML and to `heed list probes`. They read the weights before a step's update and do not affect training.
namespace heed {

/// What a probe reads; members that its Input does not name are empty.
struct Probed {
  ProbeSettings const& settings;
  Parameters const& parameters;                       ///< with the step's gradient, for probes with Input::step
  std::vector<AttentionRecord> attention = {};        ///< in the order of the pass
  std::vector<Tensor> streams = {};                   ///< the residual stream after each block
  std::vector<std::vector<Tensor>> recurrences = {};  ///< per recurrent cell, its output after each step, recorded
  std::function<Tensor()> loss = {};                  ///< L of the probes' batch, recorded; draws nothing
};

struct Probe {
  /// The input of a probe: parameters and gradients of a training step; the attention of a pass; that over random tokens that come twice;
  /// gradients of scores; the residual streams of a pass; a recurrent cell's outputs; a loss function, for passes of the probe's own.
  enum class Input { step, attention, repetition, score_gradients, streams, recurrences, loss };

  std::string group, name, formula, help;
  MetricInfo records;  ///< names without `probe.`; formula and help are the probe's
  Input input;
  std::function<void(Probed const& probed, Row& row)> measure;
  /// Why it does not apply to a model, as "it reads a source too"; nothing: it applies. Null: it applies to any.
  std::function<std::optional<std::string>(Model const& model)> unavailable = {};

  auto order() const { return std::tie(group, name); }
  /// The metric that it writes.
  void declare() const {
    Declared<MetricInfo>({"probe." + records.name, records.unit, records.better, formula + ", " + help, records.bounds});
  }
};
extern template void Registry<Probe>::add(Probe);  // compiled once

/// One query's row of attention.
struct AttentionRow {
  std::span<double const> numbers;
  double operator[](RowStatistic which) const { return at(numbers, which); }
  /// False for a row of linear attention, whose weights come from no scores and have signs: statistics are of their absolute values.
  bool has_scores() const { return !((*this)[RowStatistic::total] > 0 && std::isnan((*this)[RowStatistic::score_mean])); }
};

/// A number of a head, or of a row; nothing: it has none.
using HeadNumber = std::function<std::optional<double>(AttentionRecord const& layer, Index head)>;
using RowNumber = std::function<std::optional<double>(AttentionRow const&)>;

/// A probe that records f(layer, head) as `probe.METRIC.layer0.head1`; a metric begins with the probe's group.
Probe probe_of_heads(std::string name, std::string const& metric, std::string formula, std::string help, Probe::Input input, HeadNumber f,
                     Bounds bounds = {}, std::optional<std::string> (*unavailable)(Model const&) = nullptr);

/// Records the mean of f over the rows of each head as `probe.METRIC.layer0.head1` and, with `with_median`, the median as `….median`. Rows
/// whose weights are all 0, and those where f gives nothing, are skipped; nothing is recorded without rows.
void record_rows(std::vector<AttentionRecord> const& layers, std::string const& metric, RowNumber const& f, bool with_median, Row& row);
/// A probe that does so.
Probe probe_of_rows(std::string name, std::string const& metric, std::string unit, std::string formula, std::string help, RowNumber f,
                    bool with_median, Bounds bounds = {});

/// Σ x²; 0 for a tensor without values: a parameter that has no gradient.
double squared_norm(Tensor const& x);

/// An approximate eigenvalue.
struct Eigenvalue {
  double value;     ///< vᵀHv of the last unit vector v
  double residual;  ///< ‖Hv − value·v‖: some eigenvalue of H is at most this far from value
  Index products;   ///< number of products Hv computed
};

/// The largest eigenvalue of a symmetric H, given by its products with vectors, from a non-zero `start`: LOBPCG with one vector (Knyazev
/// 2001). The next v maximises vᵀHv over the span of v, Hv and the last step. Plain power iteration would find the eigenvalue of the
/// largest modulus, which may be negative, and would not converge where the outermost two are about λ and −λ, as is common for Hessians of
/// networks. Stops when the residual is at most tolerance·|value|, or after `iterations` products.
Eigenvalue largest_eigenvalue(std::function<std::vector<double>(std::vector<double> const&)> const& product, std::vector<double> start,
                              Index iterations, double tolerance);

}  // namespace heed
