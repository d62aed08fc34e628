#pragma once

#include "autograd/tensor.hpp"

/// In-place updates of training, each in one pass. All arrays of a call have one shape and one real dtype; only the elements [begin, end)
/// are changed, and a caller may split them among threads in any way: an element's bits depend on its own values alone.
namespace heed::kernels {

struct Elements {
  Index begin, end;
};

/// Stochastic gradient descent: g ← factor·g + l2·p;  v ← momentum·v + g;  p ← p − rate·(nesterov ? g + momentum·v : v).
struct SgdUpdate {
  double rate, gradient_factor, l2, momentum;
  bool nesterov;
};
/// `velocity` may be undefined if there is no momentum.
void sgd_update(Tensor& parameter, Tensor const& gradient, Tensor& velocity, SgdUpdate const& update, Elements at);

/// Adam (Kingma & Ba 2015): g ← factor·g + l2·p;  m ← β₁m + (1 − β₁)g;  v ← β₂v + (1 − β₂)g²;
/// p ← shrink·p − rate·m / (√v·root_factor + eps), with the bias corrections in `rate` and `root_factor`.
struct AdamUpdate {
  double rate, gradient_factor, l2, shrink, beta1, beta2, root_factor, eps;
};
/// Update number t, from 1, of learning rate lr; gradient_factor and shrink are 1, l2 is 0.
AdamUpdate adam_step(Index t, double lr, double beta1, double beta2, double eps);
void adam_update(Tensor& parameter, Tensor const& gradient, Tensor& first, Tensor& second, AdamUpdate const& update, Elements at);

/// average ← (1 − weight)·average + weight·x.
void average_update(Tensor& average, Tensor const& x, double weight, Elements at);

/// Σ x², summed in double precision.
double sum_of_squares(Tensor const& x, Elements at);

}  // namespace heed::kernels
