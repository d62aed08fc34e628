#include "experiments/study/samples.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

namespace heed {

namespace {

double median(std::span<float> x) {
  auto const middle = x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2);
  std::nth_element(x.begin(), middle, x.end());
  if (x.size() % 2 == 1) return *middle;
  return (static_cast<double>(*middle) + *std::max_element(x.begin(), middle)) / 2;
}

/// The 1, 10, 90 and 99 % quantiles of x, which is reordered, and the share of Σ x² that its largest hundredth carries.
std::array<double, 5> spread_of(std::span<float> x) {
  std::array<double, 5> spread{};
  auto const square = [](double sum, float value) { return sum + static_cast<double>(value) * static_cast<double>(value); };
  auto end = x.end();
  for (auto const& [i, level] : {std::pair<std::size_t, double>{3, 0.99}, {2, 0.9}, {1, 0.1}, {0, 0.01}}) {
    auto const at = x.begin() + static_cast<std::ptrdiff_t>(level * static_cast<double>(x.size()));
    std::nth_element(x.begin(), at, end);
    spread[i] = static_cast<double>(*at);
    if (i == 3) spread[4] = std::accumulate(at, end, 0.0, square);
    end = at;
  }
  double const all = std::accumulate(x.begin(), x.end(), 0.0, square);
  spread[4] = all > 0 ? spread[4] / all : 0;
  return spread;
}

/// A copy of the values of the first so many blocks' rows in 32 lots of blocks, one after the other, for each of which `look` is called.
template <class Look>
std::vector<float> in_lots(std::vector<float> const& values, std::size_t count, std::size_t rows, Look const& look) {
  std::size_t const lots = std::min<std::size_t>(32, count);
  std::vector<float> copy(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count * rows));
  for (std::size_t lot = 0; lot < lots; ++lot) {
    std::size_t const first = count * lot / lots * rows, last = count * (lot + 1) / lots * rows;
    look(std::span(copy).subspan(first, last - first));
  }
  return copy;
}

/// The median over all rows; its error from the lots' medians.
Measured median_of(std::vector<float> const& values, std::size_t count) {
  std::vector<double> medians;
  auto sorted = in_lots(values, count, values.size() / count, [&](std::span<float> lot) { medians.push_back(median(lot)); });
  return {median(sorted), measured_mean(medians).standard_error, {}};
}

/// Far quantiles need no more than a million rows.
void add_spread_of(std::vector<float> const& values, std::size_t count, std::array<Quantity, 5> const& names, ScalingCell& cell) {
  constexpr std::size_t enough = 1 << 20;
  std::array<std::vector<double>, 5> of_lots;
  std::size_t const rows_of_block = values.size() / count, most = std::max<std::size_t>(32, enough / rows_of_block);
  auto rows = in_lots(values, std::min(count, most), rows_of_block, [&](std::span<float> lot) {
    auto const spread = spread_of(lot);
    for (std::size_t i = 0; i < spread.size(); ++i) of_lots[i].push_back(spread[i]);
  });
  auto const spread = spread_of(rows);
  for (std::size_t i = 0; i < spread.size(); ++i)
    cell.values[static_cast<std::size_t>(names[i])] = {spread[i], measured_mean(of_lots[i]).standard_error, {}};
}

}  // namespace

Measured measured_mean(std::vector<double> const& x) {
  auto const n = static_cast<double>(x.size());
  double const mean = std::accumulate(x.begin(), x.end(), 0.0) / n;
  double squares = 0;
  for (double const value : x) squares += (value - mean) * (value - mean);
  return {mean, std::sqrt(squares / (n - 1) / n), {}};
}

void Samples::add(BlockMeans const& block, bool gradients) {
  for (std::size_t i = 0; i < quantities; ++i) {
    auto const q = static_cast<Quantity>(i);
    bool const of_rows = q == Quantity::frobenius_median || describes_spread(q) || q == Quantity::query_weights_gradient;
    if (!of_rows && (gradients || !is_gradient(q))) blocks_[i].push_back(block.means[i]);
  }
  frobenius_.insert(frobenius_.end(), block.frobenius.begin(), block.frobenius.end());
  query_gradient_.insert(query_gradient_.end(), block.query_gradient.begin(), block.query_gradient.end());
}

/// E z⁴ / (E z²)², its error to first order.
Measured Samples::kurtosis() const {
  auto const &second = of(Quantity::logit_variance), &fourth = of(Quantity::logit_kurtosis);
  double const m2 = measured_mean(second).mean, m4 = measured_mean(fourth).mean;
  std::vector<double> linear(second.size());
  for (std::size_t b = 0; b < second.size(); ++b) linear[b] = fourth[b] / (m2 * m2) - 2 * m4 * second[b] / (m2 * m2 * m2);
  return {m4 / (m2 * m2), measured_mean(linear).standard_error, {}};
}

void Samples::add_spread(ScalingCell& cell) const {
  add_spread_of(frobenius_, of(Quantity::trace).size(),
                {Quantity::frobenius_1, Quantity::frobenius_10, Quantity::frobenius_90, Quantity::frobenius_99, Quantity::frobenius_top},
                cell);
  if (query_gradient_.empty()) return;
  auto const count = of(Quantity::query_gradient_squared).size();
  add_spread_of(query_gradient_, count,
                {Quantity::query_gradient_1, Quantity::query_gradient_10, Quantity::query_gradient_90, Quantity::query_gradient_99,
                 Quantity::query_gradient_top},
                cell);
  cell.values[static_cast<std::size_t>(Quantity::query_gradient_median)] = median_of(query_gradient_, count);
}

void Samples::put_into(PartOfCell& part, std::string const& prefix) {
  auto const put = [&](std::string const& name, auto& values, DType dtype) {
    if (!values.empty()) part[prefix + name] = Tensor::at_memory(values.data(), {std::ssize(values)}, dtype, nullptr);
  };
  for (std::size_t q = 0; q < quantities; ++q) put(name(static_cast<Quantity>(q)), blocks_[q], DType::float64);
  put("norms", frobenius_, DType::float32);
  put("query_gradient_norms", query_gradient_, DType::float32);
}

Samples Samples::from(PartOfCell const& part, std::string const& prefix) {
  Samples samples;
  auto const take = [&]<class T>(std::string const& name, std::vector<T>& values) {
    auto const found = part.find(prefix + name);
    if (found == part.end()) return;
    auto const kept = found->second.data<T>();
    values.assign(kept.begin(), kept.end());
  };
  for (std::size_t q = 0; q < quantities; ++q) take(name(static_cast<Quantity>(q)), samples.blocks_[q]);
  take("norms", samples.frobenius_);
  take("query_gradient_norms", samples.query_gradient_);
  return samples;
}

void Samples::summarise(ScalingCell& cell) const {
  for (std::size_t q = 0; q < quantities; ++q) {
    if (!blocks_[q].empty()) cell.values[q] = measured_mean(blocks_[q]);
  }
  cell.values[static_cast<std::size_t>(Quantity::logit_kurtosis)] = kurtosis();
  cell.values[static_cast<std::size_t>(Quantity::frobenius_median)] = median_of(frobenius_, of(Quantity::trace).size());
}

}  // namespace heed
