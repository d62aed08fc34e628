// Theoretical values for the cells of softmax_scaling.

#include <algorithm>
#include <cmath>

#include "autograd/parallel.hpp"
#include "experiments/ablation/scaling/quadrature.hpp"
#include "experiments/study/softmax_scaling.hpp"
#include "nn/attention/steps.hpp"

namespace heed {

namespace {

/// Theoretical values for one distribution, scale and d_k, by number of keys.
std::vector<std::array<std::optional<double>, quantities>> theory_of(std::string const& distribution, double scale, Index d_k,
                                                                     std::vector<Index> const& keys) {
  auto const d = static_cast<double>(d_k);
  std::vector<std::array<std::optional<double>, quantities>> result(keys.size());
  auto const set = [&](std::size_t i, Quantity q, double value) { at(result[i], q) = value; };
  auto const set_softmax = [&](std::size_t i, SoftmaxExpectations const& e) {
    set(i, Quantity::trace, e.trace);
    set(i, Quantity::frobenius_squared, e.frobenius_squared);
    set(i, Quantity::entropy, e.entropy);
    set(i, Quantity::max_weight, e.max_weight);
  };
  // E z⁴/(E z²)² = 3 + (κ² − 3)/d for components of kurtosis κ
  Law const law = law_of(distribution);
  double const component = law == Law::gaussian ? 3 : law == Law::uniform ? 1.8 : 1;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    set(i, Quantity::logit_variance, scale * scale * d);
    set(i, Quantity::logit_kurtosis, law == Law::logits ? 3 : 3 + (component * component - 3) / d);
  }
  if (law == Law::logits) {
    auto const expected = softmax_of_normal_logits(scale * scale * d, keys);
    for (std::size_t i = 0; i < keys.size(); ++i) set_softmax(i, expected[i]);
  }
  if (law == Law::gaussian) {
    auto const expected = softmax_of_gaussian_products(d_k, scale, keys);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      set_softmax(i, expected[i].softmax);
      set(i, Quantity::query_gradient_squared, expected[i].query_gradient_squared);
      set(i, Quantity::key_gradient_squared, expected[i].key_gradient_squared);
    }
  }
  return result;
}

}  // namespace

void GridTheory::compute(std::string const& distribution, Index d_k) {
  by_scale_.assign(scales_.size(), {});
  parallel_for(static_cast<Index>(scales_.size()), 1e9, [&](Index begin, Index end) {
    for (auto k = static_cast<std::size_t>(begin); k < static_cast<std::size_t>(end); ++k)
      by_scale_[k] = theory_of(distribution, fixed_scale(scales_[k], static_cast<double>(d_k)).value(), d_k, keys_);
  });
  distribution_ = distribution;
  d_k_ = d_k;
}

void GridTheory::add_to(std::vector<ScalingCell>& cells) {
  for (auto& cell : cells) {
    if (cell.distribution != distribution_ || cell.d_k != d_k_) compute(cell.distribution, cell.d_k);
    auto const scale = static_cast<std::size_t>(std::ranges::find(scales_, cell.scale) - scales_.begin());
    auto const& theory = at(by_scale_[scale], std::ranges::find(keys_, cell.keys) - keys_.begin());
    for (std::size_t q = 0; q < quantities; ++q) {
      if (cell.values[q]) cell.values[q]->theory = theory[q];
    }
  }
}

}  // namespace heed
