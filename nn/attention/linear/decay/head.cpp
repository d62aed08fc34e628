#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/product.hpp"
#include "nn/attention/linear/decay/learned.hpp"

namespace heed {

namespace {

struct HeadDecay : Decay {
  HeadDecay(Scope const& scope, LinearSettings const& settings, LinearShape const& shape)
      : weight(scope.parameter("weight", {shape.heads, shape.width}, Initial::weight(), WeightDecay::on)),
        bias(scope.parameter("bias", {shape.heads}, initial_step(settings.start), WeightDecay::off)),
        rate(scope.parameter("rate", {shape.heads}, initial_rate(settings.start), WeightDecay::off)) {}
  Tensor fill(LinearInputs& in, Tensor const& x) const override {
    Tensor const step = softplus(linear(x, weight, bias));
    in.log_decay = -(exp(rate) * step);
    return step;
  }

  Tensor weight, bias, rate;
};

Declared<DecayKind> const head_decay{{"head", "−e^rate_h · softplus(W x)_h", "Dao & Gu 2024",
                                      [](Scope const& scope, LinearSettings const& settings, LinearShape const& shape) {
                                        return std::make_unique<HeadDecay>(scope, settings, shape);
                                      },
                                      true}};

}  // namespace

}  // namespace heed
