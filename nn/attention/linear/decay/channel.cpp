#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/product.hpp"
#include "autograd/ops/shape.hpp"
#include "nn/attention/linear/decay/learned.hpp"

namespace heed {

namespace {

struct ChannelDecay : Decay {
  ChannelDecay(Scope const& scope, LinearSettings const& settings, LinearShape const& shape)
      : down(scope.at("down").parameter("weight", {settings.rank.value_or(shape.key_width), shape.width}, Initial::weight(),
                                        WeightDecay::on)),
        up(scope.at("up").parameter("weight", {shape.heads * shape.key_width, down.size(0)}, Initial::weight(), WeightDecay::on)),
        bias(scope.at("up").parameter("bias", {shape.heads * shape.key_width}, initial_step(settings.start), WeightDecay::off)),
        rate(scope.parameter("rate", {shape.heads}, initial_rate(settings.start), WeightDecay::off)) {}
  Tensor fill(LinearInputs& in, Tensor const& x) const override {
    Tensor const step = softplus(linear(linear(x, down, {}), up, bias));
    in.log_decay = -times_per_head(step, reshape(exp(rate), {1, 1, rate.size(0)}));
    return {};
  }

  Tensor down, up, bias, rate;
};

Declared<DecayKind> const channel_decay{{"channel", "−e^rate_h · softplus(W_up W_down x)", "Yang et al. 2024",
                                         [](Scope const& scope, LinearSettings const& settings, LinearShape const& shape) {
                                           return std::make_unique<ChannelDecay>(scope, settings, shape);
                                         }}};

}  // namespace

}  // namespace heed
