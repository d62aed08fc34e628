// The kinds of optimizers there are.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/kernels/update.hpp"
#include "nn/optimizer.hpp"

namespace heed {

namespace {

Field lr_field(double* lr) { return field(lr, "lr", "peak learning rate").above(0); }

Field weight_decay_field(double* decay, std::string help) {
  return field(decay, "weight_decay",
               std::move(help) + "; weights and embeddings only, not biases, norms and scalars such as a head's scale")
      .at_least(0);
}

struct SgdSettings : OptimizerSettings {
  double momentum = 0;
  bool nesterov = false;

  SgdSettings() { lr = 0.1; }
  std::vector<Field> own_fields() override {
    return {
        lr_field(&lr),
        field(&momentum, "momentum", "share of the previous velocity that is kept").in(0, 1),
        field(&nesterov, "nesterov", "Nesterov momentum (Nesterov 1983)"),
        weight_decay_field(&weight_decay, "factor λ of the term λ · parameter added to the gradient"),
    };
  }
  std::optional<std::string> contradiction() override {
    if (nesterov && momentum == 0) return "nesterov: wants a momentum above 0";
    return std::nullopt;
  }
  std::unique_ptr<Optimizer> make(Parameters const& parameters) const override;
};

/// Stochastic gradient descent with momentum, in PyTorch's form: v ← momentum·v + g; p ← p − lr·v.
class Sgd : public Optimizer {
 public:
  Sgd(Parameters const& parameters, SgdSettings const& settings)
      : Optimizer(parameters, "sgd", settings.momentum > 0 ? std::vector<std::string>{"velocity"} : std::vector<std::string>{}),
        settings_(settings) {}

 private:
  void update(OptimizedParameter& entry, ParameterRange const& part) const override {
    Tensor none;
    kernels::sgd_update(entry.parameter, part.gradient, entry.slots.empty() ? none : entry.slots[0],
                        {.rate = part.lr,
                         .gradient_factor = part.gradient_factor,
                         .l2 = entry.decay(settings_.weight_decay),
                         .momentum = settings_.momentum,
                         .nesterov = settings_.nesterov},
                        {part.begin, part.end});
  }

  SgdSettings settings_;
};

std::unique_ptr<Optimizer> SgdSettings::make(Parameters const& parameters) const { return std::make_unique<Sgd>(parameters, *this); }

Declared<OptimizerKind> const sgd{{"sgd", "stochastic gradient descent, with momentum", [] { return std::make_shared<SgdSettings>(); }}};

/// Adam, and AdamW (Loshchilov & Hutter 2019): the same but for where the weight decay falls.
struct AdamSettings : OptimizerSettings {
  bool decoupled;
  std::vector<double> betas{0.9, 0.999};
  double eps = 1e-8;

  explicit AdamSettings(bool is_decoupled) : decoupled(is_decoupled) { weight_decay = decoupled ? 0.01 : 0; }
  std::vector<Field> own_fields() override {
    return {
        lr_field(&lr),
        field(&betas, "betas", "decay rates of the running means of the gradient and the squared gradient").in(0, 1),
        weight_decay_field(&weight_decay, decoupled ? "factor λ of the term lr · λ · parameter subtracted at each step"
                                                    : "factor λ of the term λ · parameter added to the gradient"),
        field(&eps, "eps", "added to the root of the mean squared gradient").at_least(0),
    };
  }
  std::optional<std::string> contradiction() override {
    if (betas.size() == 2 && betas[0] < 1 && betas[1] < 1) return std::nullopt;
    return fmt::format("betas: wants two numbers in [0, 1), found [{}]", fmt::join(betas, ", "));
  }
  std::unique_ptr<Optimizer> make(Parameters const& parameters) const override;
};

class Adam : public Optimizer {
 public:
  Adam(Parameters const& parameters, AdamSettings const& settings)
      : Optimizer(parameters, settings.decoupled ? "adamw" : "adam", {"first", "second"}), settings_(settings) {}

 private:
  void update(OptimizedParameter& entry, ParameterRange const& part) const override {
    double const decay = entry.decay(settings_.weight_decay);
    auto step = kernels::adam_step(part.number, part.lr, settings_.betas[0], settings_.betas[1], settings_.eps);
    step.gradient_factor = part.gradient_factor;
    (settings_.decoupled ? step.shrink : step.l2) = settings_.decoupled ? 1 - part.lr * decay : decay;
    kernels::adam_update(entry.parameter, part.gradient, entry.slots[0], entry.slots[1], step, {part.begin, part.end});
  }

  AdamSettings settings_;
};

std::unique_ptr<Optimizer> AdamSettings::make(Parameters const& parameters) const { return std::make_unique<Adam>(parameters, *this); }

Declared<OptimizerKind> const adam{{"adam", "Adam (Kingma & Ba 2015)", [] { return std::make_shared<AdamSettings>(false); }}};
Declared<OptimizerKind> const adamw{
    {"adamw", "Adam with decoupled weight decay (Loshchilov & Hutter 2019)", [] { return std::make_shared<AdamSettings>(true); }}};

}  // namespace

}  // namespace heed
