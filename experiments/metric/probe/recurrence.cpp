// Decay of gradients through the steps of a recurrent cell.

#include <cmath>

#include <fmt/format.h>

#include "autograd/graph.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/random.hpp"
#include "experiments/metric/probe/probe.hpp"

namespace heed {

namespace {

/// √(E ‖∂h_T/∂h_t‖² / w) of the outputs of a cell, by lag T − t, from 0 on: by random projections of h_T, one a row, of which
/// E ‖vᵀ J‖² = ‖J‖² for v ~ N(0, 1).
std::vector<double> norms_by_lag(std::vector<Tensor> const& outputs) {
  Tensor const& last = outputs.back();
  Tensor const v = Tensor::normal(last.shape(), Stream(0, "probe.through_time"), last.dtype());
  std::vector<double> norms;
  for (Tensor const& slope : grad({sum(v * last)}, outputs)) norms.push_back(std::sqrt(squared_norm(slope) / to_double(last.elements())));
  return {norms.rbegin(), norms.rend()};
}

/// The slope of the least-squares line through (lag, log norm) over the later half of the steps, where transients have died out.
double slope_of_logs(std::vector<double> const& norms) {
  double const count = static_cast<double>(norms.size() / 2 + 1);
  double lags = 0, logs = 0, products = 0, squares = 0;
  for (std::size_t i = 0; i <= norms.size() / 2 && i < norms.size(); ++i) {
    double const lag = static_cast<double>(i), log = std::log(norms[i]);
    lags += lag, logs += log, products += lag * log, squares += lag * lag;
  }
  return (count * products - lags * logs) / (count * squares - lags * lags);
}

Declared<Probe> const through_time_probe{
    {"gradients",
     "through_time",
     "‖∂h_T/∂h_t‖ / √w by lag T − t = 1, 2, 4, …; slope of its logarithm",
     "gradient through time of the outputs h of a recurrent cell of width w (also in encoders), T its last step; root mean square over "
     "sequences. A slope below 0: vanishing, above 0: exploding; over the later half of the steps",
     {"gradients.through_time.*", "", {}, ""},
     Probe::Input::recurrences,
     [](Probed const& probed, Row& row) {
       for (std::size_t cell = 0; cell < probed.recurrences.size(); ++cell) {
         auto const norms = norms_by_lag(probed.recurrences[cell]);
         auto const name = fmt::format("probe.gradients.through_time.cell{}", cell);
         for (std::size_t lag = 1; lag < norms.size(); lag *= 2) row.set(fmt::format("{}.lag{}", name, lag), norms[lag]);
         if (norms.size() > 2) row.set(name + ".slope", slope_of_logs(norms));
       }
     }}};

}  // namespace

}  // namespace heed
