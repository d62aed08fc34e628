#pragma once

#include <vector>

#include "autograd/index.hpp"

namespace heed {

/// Expectations over random logits of a softmax p of n logits, with Jacobian J = diag(p) − p pᵀ.
struct SoftmaxExpectations {
  double trace = 0;              ///< E tr J = 1 − E Σ p²
  double frobenius_squared = 0;  ///< E ‖J‖²_F = E [Σ p² − 2 Σ p³ + (Σ p²)²]
  double entropy = 0;            ///< E −Σ p log p, nat
  double max_weight = 0;         ///< E max p
  double along_logits = 0;       ///< E ‖J z‖², z the logits
};

/// Logits iid N(0, variance), for each number of keys (≥ 2), by one-dimensional trapezoidal sums of
///   G_m(u) = ∫ N(z; 0, σ²) e^{m(z+u)} e^{−e^{z+u}} dz,   E p₁^m = ∫ G_m G_0^{n−1} du / Γ(m),   E p₁² p₂² = ∫ G_2² G_0^{n−2} du / 6,
///   E log Σ e^z = ∫ (e^{−e^u} − G_0^n) du,   E H = E log Σ e^z − σ² E tr J (Stein's lemma),
///   E max p = n ∫∫ N(a) e^{a+u−e^{a+u}} [∫_{z<a} N(z) e^{−e^{z+u}} dz]^{n−1} da du;
/// for ‖J z‖² the same with powers of z in the integral G. Accurate to 1e-9 for σ up to a hundred.
std::vector<SoftmaxExpectations> softmax_of_normal_logits(double variance, std::vector<Index> const& keys);

/// The same for logits s q·k_j of one query q ~ N(0, I_d) and keys k_j ~ N(0, I_d): given q they are iid N(0, s²|q|²), and |q| is χ with d
/// degrees of freedom. The gradients of the weights by query and keys have the expectations
///   ‖∂p/∂q‖² = s² E [(d − 1) ‖J‖² + ‖J z‖²/σ²],   ‖∂p/∂k‖² = E σ² ‖J‖²,   σ = s|q|.
struct DotProductExpectations {
  SoftmaxExpectations softmax;
  double query_gradient_squared = 0;
  double key_gradient_squared = 0;
};
std::vector<DotProductExpectations> softmax_of_gaussian_products(Index width, double scale, std::vector<Index> const& keys);

/// Expectation m_n of the largest of n standard normals. For σ → ∞: E tr J → m_n/σ, E ‖J‖²_F → m_n/(3σ), E H → π²/6 · m_n/σ and 1 − E max p
/// → ln 2 · m_n/σ, because the gap between the two largest logits has the density m_n/σ at 0.
double expected_maximum(Index keys);

/// The quantile g at this probability of the gap between the two largest of n standard normals: P(gap > g) = n ∫ φ(t) Φ(t − g)^{n−1}. For σ
/// → ∞ only the two largest logits have weight, and a quantile of ‖J‖_F becomes 2 e^{−σ g} with one of the gap.
double gap_quantile(Index keys, double probability);

}  // namespace heed
