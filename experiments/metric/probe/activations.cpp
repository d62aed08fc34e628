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
                                     Tensor const& stream = probed.streams[l];
                                     row.set(MetricKey::of_probe("activations.rms", l).text(),
                                             std::sqrt(squared_norm(stream) / to_double(stream.elements())));
                                   }
                                 }}};

}  // namespace

}  // namespace heed
