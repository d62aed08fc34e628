#include <cmath>

#include "autograd/ops/shape.hpp"
#include "nn/attention/linear/parts.hpp"

namespace heed {

namespace {

struct FixedDecay : Decay {
  explicit FixedDecay(Index heads) {
    for (Index h = 0; h < heads; ++h) rates.push_back(std::log1p(-std::exp2(-5.0 - to_double(h))));
  }
  Tensor fill(LinearInputs& in, Tensor const& x) const override {
    in.log_decay = expand(Tensor::of(rates, {std::ssize(rates)}, x.dtype()), {x.size(0), x.size(1), std::ssize(rates)});
    return {};
  }

  std::vector<double> rates;
};

Declared<DecayKind> const fixed_decay{
    {"fixed", "log(1 − 2^(−5−h)), h = 0 … H − 1", "Sun et al. 2023",
     [](Scope const&, LinearSettings const&, LinearShape const& shape) { return std::make_unique<FixedDecay>(shape.heads); }}};

}  // namespace

}  // namespace heed
