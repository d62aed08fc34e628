// The kinds of optimizers there are.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/graph.hpp"
#include "autograd/kernels/update.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/product.hpp"
#include "nn/optimizer.hpp"

namespace heed {

namespace {

Field lr_field(double* lr) { return field(lr, "lr", "peak learning rate").above(0); }

Field weight_decay_field(double* decay, std::string help) {
  return field(decay, "weight_decay",
               std::move(help) + "; weights and embeddings only, not biases, norms and scalars such as a head's scale")
      .at_least(0);
}

/// Stochastic gradient descent with momentum, in PyTorch's form: v ← momentum·v + g; p ← p − lr·v.
struct Sgd : OptimizerSettings {
  double momentum = 0;
  bool nesterov = false;

  Sgd() { lr = 0.1; }
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
  std::vector<std::string> slots(OptimizedParameter const&) const override {
    return momentum > 0 ? std::vector<std::string>{"velocity"} : std::vector<std::string>();
  }
  void update(OptimizedParameter& entry, ParameterRange const& part) const override {
    Tensor none;
    kernels::sgd_update(entry.parameter, part.gradient, entry.slots.empty() ? none : entry.slots[0],
                        {.rate = part.lr,
                         .gradient_factor = part.gradient_factor,
                         .l2 = entry.decay(weight_decay),
                         .momentum = momentum,
                         .nesterov = nesterov},
                        {part.begin, part.end});
  }
};

Declared<OptimizerKind> const sgd{{"sgd", "stochastic gradient descent, with momentum", [] { return std::make_shared<Sgd>(); }}};

/// Adam, and AdamW (Loshchilov & Hutter 2019): the same but for where the weight decay falls.
struct Adam : OptimizerSettings {
  bool decoupled;
  std::vector<double> betas{0.9, 0.999};
  double eps = 1e-8;

  explicit Adam(bool is_decoupled) : decoupled(is_decoupled) { weight_decay = decoupled ? 0.01 : 0; }
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
  std::vector<std::string> slots(OptimizedParameter const&) const override { return {"first", "second"}; }
  void update(OptimizedParameter& entry, ParameterRange const& part) const override {
    double const decay = entry.decay(weight_decay);
    auto step = kernels::adam_step(part.number, part.lr, betas[0], betas[1], eps);
    step.gradient_factor = part.gradient_factor;
    (decoupled ? step.shrink : step.l2) = decoupled ? 1 - part.lr * decay : decay;
    kernels::adam_update(entry.parameter, part.gradient, entry.slots[0], entry.slots[1], step, {part.begin, part.end});
  }
};

Declared<OptimizerKind> const adam{{"adam", "Adam (Kingma & Ba 2015)", [] { return std::make_shared<Adam>(false); }}};
Declared<OptimizerKind> const adamw{
    {"adamw", "Adam with decoupled weight decay (Loshchilov & Hutter 2019)", [] { return std::make_shared<Adam>(true); }}};

/// x [n, m] with its singular values moved to between about 0.7 and 1.2: five Newton–Schulz steps X ← aX + (bA + cA²)X, A = XXᵀ, from
/// x/‖x‖, on the side with fewer rows.
Tensor orthogonalised(Tensor const& x) {
  double const norm = std::sqrt(kernels::sum_of_squares(x, {0, x.elements()}));
  bool const tall = x.size(0) > x.size(1);
  Tensor result = x / (norm + 1e-7);
  for (int step = 0; step < 5; ++step) {
    Tensor const gram = matmul(result, result, tall, !tall);
    Tensor const polynomial = -4.7750 * gram + 2.0315 * matmul(gram, gram);
    result = 3.4445 * result + (tall ? matmul(result, polynomial) : matmul(polynomial, result));
  }
  return result;
}

/// Muon (Jordan 2024): m ← βm + (1 − β)g; p ← (1 − lr·λ)p − lr·√max(1, rows/columns)·orthogonalised((1 − β)g + βm) for the layers'
/// weight matrices [rows = out, columns = in], without Nesterov momentum orthogonalised(m); AdamW for the rest. The state of a matrix is m
/// alone ("first").
struct Muon : Adam {
  double momentum = 0.95;
  bool nesterov = true;
  double adam_lr = 3e-4;

  Muon() : Adam(true) { lr = 0.02, weight_decay = 0, betas = {0.9, 0.95}; }
  std::vector<Field> own_fields() override {
    return {
        field(&lr, "lr", "peak learning rate of the layers' matrices").above(0),
        field(&momentum, "momentum", "share of the previous momentum that is kept").in(0, 0.9999),
        field(&nesterov, "nesterov", "Nesterov momentum (Nesterov 1983)"),
        field(&adam_lr, "adam_lr", "peak learning rate of all other parameters, which adamw updates").above(0),
        field(&betas, "betas", "of adamw").in(0, 1),
        field(&weight_decay, "weight_decay", "factor λ of the term lr · λ · parameter subtracted at each step, of weights and embeddings")
            .at_least(0),
        field(&eps, "eps", "of adamw").at_least(0),
    };
  }
  std::vector<std::string> slots(OptimizedParameter const& entry) const override {
    return is_matrix(entry) ? std::vector<std::string>{"first"} : Adam::slots(entry);
  }
  Tensor direction(OptimizedParameter& entry, Tensor const& gradient, double gradient_factor) const override {
    if (!is_matrix(entry)) return gradient;
    NoGrad const no_grad;
    Tensor const g = gradient_factor * gradient;
    kernels::average_update(entry.slots[0], g, 1 - momentum, {0, g.elements()});
    Tensor const& mean = entry.slots[0];
    auto const rows = static_cast<double>(g.size(0)), columns = static_cast<double>(g.size(1));
    Tensor const followed = nesterov ? (1 - momentum) * g + momentum * mean : mean;
    return std::sqrt(std::max(1.0, rows / columns)) * orthogonalised(followed);
  }
  void update(OptimizedParameter& entry, ParameterRange const& part) const override {
    if (is_matrix(entry)) {
      Tensor none;
      double const decay = entry.decay(weight_decay);
      return kernels::sgd_update(entry.parameter, part.gradient, none,
                                 {.rate = part.lr, .gradient_factor = 1, .l2 = decay, .momentum = 0, .nesterov = false},
                                 {part.begin, part.end});
    }
    ParameterRange by_adam = part;
    if (!entry.treatment.own_rate) by_adam.lr = part.lr * adam_lr / lr;
    Adam::update(entry, by_adam);
  }

 private:
  static bool is_matrix(OptimizedParameter const& entry) {
    return entry.parameter.rank() == 2 && entry.decays && entry.name.ends_with(".weight") && in_a_layer(entry.name);
  }
};

Declared<OptimizerKind> const muon{
    {"muon", "Muon for the layers' matrices, adamw for the rest (Jordan 2024)", [] { return std::make_shared<Muon>(); }}};

}  // namespace

}  // namespace heed
