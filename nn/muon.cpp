#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/graph.hpp"
#include "autograd/kernels/update.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/product.hpp"
#include "nn/optimizer.hpp"

namespace heed {

namespace {

struct MuonSettings : OptimizerSettings {
  double momentum = 0.95;
  bool nesterov = true;
  double adam_lr = 3e-4;
  std::vector<double> betas{0.9, 0.95};
  double eps = 1e-8;

  MuonSettings() { lr = 0.02; }
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
  std::optional<std::string> contradiction() override {
    if (betas.size() == 2 && betas[0] < 1 && betas[1] < 1) return std::nullopt;
    return fmt::format("betas: wants two numbers in [0, 1), found [{}]", fmt::join(betas, ", "));
  }
  std::unique_ptr<Optimizer> make(Parameters const& parameters) const override;
};

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
class Muon : public Optimizer {
 public:
  Muon(Parameters const& parameters, MuonSettings const& settings)
      : Optimizer(parameters, "muon", {"first", "second"}), settings_(settings) {
    for (OptimizedParameter& entry : entries_)
      if (is_matrix(entry)) entry.slots.pop_back();
  }

 private:
  static bool is_matrix(OptimizedParameter const& entry) {
    return entry.parameter.rank() == 2 && entry.decays && entry.name.ends_with(".weight") && in_a_layer(entry.name);
  }

  Tensor direction(OptimizedParameter& entry, Tensor const& gradient, double gradient_factor) const override {
    if (!is_matrix(entry)) return gradient;
    NoGrad const no_grad;
    Tensor const g = gradient_factor * gradient;
    kernels::average_update(entry.slots[0], g, 1 - settings_.momentum, {0, g.elements()});
    Tensor const& momentum = entry.slots[0];
    auto const rows = static_cast<double>(g.size(0)), columns = static_cast<double>(g.size(1));
    Tensor const followed = settings_.nesterov ? (1 - settings_.momentum) * g + settings_.momentum * momentum : momentum;
    return std::sqrt(std::max(1.0, rows / columns)) * orthogonalised(followed);
  }

  void update(OptimizedParameter& entry, ParameterRange const& part) const override {
    double const decay = entry.decay(settings_.weight_decay);
    if (is_matrix(entry)) {
      Tensor none;
      kernels::sgd_update(entry.parameter, part.gradient, none,
                          {.rate = part.lr, .gradient_factor = 1, .l2 = decay, .momentum = 0, .nesterov = false}, {part.begin, part.end});
      return;
    }
    double const lr = entry.treatment.own_rate ? part.lr : part.lr * settings_.adam_lr / settings_.lr;
    auto step = kernels::adam_step(part.number, lr, settings_.betas[0], settings_.betas[1], settings_.eps);
    step.gradient_factor = part.gradient_factor;
    step.shrink = 1 - lr * decay;
    kernels::adam_update(entry.parameter, part.gradient, entry.slots[0], entry.slots[1], step, {part.begin, part.end});
  }

  MuonSettings settings_;
};

std::unique_ptr<Optimizer> MuonSettings::make(Parameters const& parameters) const { return std::make_unique<Muon>(parameters, *this); }

Declared<OptimizerKind> const muon{
    {"muon", "Muon for the layers' matrices, adamw for the rest (Jordan 2024)", [] { return std::make_shared<MuonSettings>(); }}};

}  // namespace

}  // namespace heed
