#include <algorithm>
#include <cmath>
#include <numeric>

#include "autograd/error.hpp"
#include "autograd/random.hpp"
#include "experiments/metric/statistics.hpp"

namespace heed {

namespace {

constexpr std::size_t exact_until = 16, random_flips = 100'000;

using SeedValues = std::vector<double>;  // a value per seed

/// Whether one difference decides a sum: it is infinite, or over a thousand times the (lower) median size of those that are not 0.
bool one_outweighs_all(SeedValues const& differences) {
  SeedValues sizes;
  for (double const value : differences)
    if (value != 0) sizes.push_back(std::abs(value));
  if (sizes.empty()) return false;
  std::ranges::sort(sizes);
  return std::isinf(sizes.back()) || sizes.back() > 1000 * sizes[(sizes.size() - 1) / 2];
}

/// The ranks of the sizes that are not 0, with the differences' signs.
SeedValues signed_ranks(SeedValues const& differences) {
  auto ranks = ranks_of(mapped(differences, [](double value) { return std::abs(value); }));
  auto const zeros = to_double(std::ranges::count(differences, 0.0));
  for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i] = differences[i] == 0 ? 0 : std::copysign(ranks[i] - zeros, differences[i]);
  return ranks;
}

/// Scaled by a power of two first, so that no square overflows and nothing is rounded.
void to_unit_length(SeedValues& row) {
  double largest = 0;
  for (double const value : row) largest = std::max(largest, std::abs(value));
  if (largest == 0) return;
  int const exponent = std::ilogb(largest);
  for (double& value : row) value = std::scalbn(value, -exponent);
  double const length = std::sqrt(std::inner_product(row.begin(), row.end(), row.begin(), 0.0));
  for (double& value : row) value /= length;
}

}  // namespace

SignFlips sign_flip_test(std::vector<std::vector<double>> const& differences, double max_size) {
  std::size_t const arms = differences.size(), seeds = arms == 0 ? 0 : differences[0].size();
  SignFlips p{std::vector(arms, 1.0), std::vector(arms, 1.0), std::vector(arms, false), std::vector(arms, 0)};
  if (seeds == 0) return p;

  // Rows of unit length: the statistic of a flip is then |Σ_s sign_s row_s|.
  auto rows = differences;
  for (std::size_t arm = 0; arm < arms; ++arm) {
    auto& row = rows[arm];
    if (row.size() != seeds) throw Error("sign_flip_test: rows of different length");
    if (std::ranges::any_of(row, [](double value) { return std::isnan(value); })) throw Error("sign_flip_test: NaN is not a number");
    for (double& value : row) value = std::clamp(value, -max_size, max_size);
    p.ranked[arm] = one_outweighs_all(row);
    if (p.ranked[arm]) row = signed_ranks(row);
    to_unit_length(row);
    double const sum = std::accumulate(row.begin(), row.end(), 0.0);
    p.direction[arm] = sum < 0 ? -1 : sum > 0 ? 1 : 0;
  }
  auto const statistic = [&](std::size_t arm, std::span<double const> signs) {
    return std::abs(std::inner_product(signs.begin(), signs.end(), rows[arm].begin(), 0.0));
  };
  std::vector<double> signs(seeds, 1.0), observed(arms);
  for (std::size_t arm = 0; arm < arms; ++arm) observed[arm] = statistic(arm, signs);
  std::vector<std::size_t> rising(arms);
  std::iota(rising.begin(), rising.end(), 0);
  std::sort(rising.begin(), rising.end(), [&](std::size_t a, std::size_t b) { return observed[a] < observed[b]; });

  // A flip and its mirror image give the same |Σ|, so the exact test keeps the first seed's sign.
  bool const exact = seeds <= exact_until;
  std::size_t const flips = exact ? std::size_t{1} << (seeds - 1) : random_flips, words = (seeds + 63) / 64;
  Stream const stream(0, "sign flips");
  std::vector<std::size_t> alone(arms), joint(arms);
  for (std::size_t flip = 0; flip < flips; ++flip) {
    for (std::size_t s = 0; s < seeds; ++s) {
      std::uint64_t const bits = exact ? flip << 1 : stream.bits(flip * words + s / 64);
      signs[s] = (bits >> s % 64 & 1) != 0 ? -1 : 1;
    }
    double largest = 0;
    for (std::size_t const arm : rising) {
      double const value = statistic(arm, signs), reach = observed[arm] - 1e-12;  // equal but for the order of the sum
      largest = std::max(largest, value);
      alone[arm] += value >= reach ? 1 : 0;
      joint[arm] += largest >= reach ? 1 : 0;
    }
  }

  // Random flips count the observed signs among them (Phipson and Smyth 2010), so that p is never 0.
  std::size_t const own = exact ? 0 : 1;
  double before = 0;
  for (auto arm = rising.rbegin(); arm != rising.rend(); ++arm) {
    p.alone[*arm] = static_cast<double>(alone[*arm] + own) / static_cast<double>(flips + own);
    p.joint[*arm] = before = std::max(before, static_cast<double>(joint[*arm] + own) / static_cast<double>(flips + own));
  }
  return p;
}

double smallest_p(std::size_t seeds) { return seeds == 0 ? 1 : std::exp2(1 - static_cast<double>(seeds)); }

}  // namespace heed
