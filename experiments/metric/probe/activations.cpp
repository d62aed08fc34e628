// The size of the residual stream.

#include <cmath>

#include "experiments/metric/key.hpp"
#include "experiments/metric/probe/probe.hpp"

namespace heed {

namespace {

Declared<Probe> const rms_probe{{"activations",
                                 "rms",
                                 "√mean x²",
                                 "RMS of the residual stream x after each layer",
                                 {"activations.rms.layer*", "", {}, ""},
                                 Probe::Input::streams,
                                 [](Probed const& probed, Row& row) {
                                   for (std::size_t l = 0; l < probed.streams.size(); ++l) {
                                     double squares = 0;
                                     for (double const x : probed.streams[l].to_vector()) squares += x * x;
                                     double const count = static_cast<double>(probed.streams[l].elements());
                                     row.set(MetricKey::of_probe("activations.rms", l).text(), std::sqrt(squares / count));
                                   }
                                 }}};

}  // namespace

}  // namespace heed
