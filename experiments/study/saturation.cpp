#include "experiments/study/saturation.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>

#include "autograd/kernels/products/gemm.hpp"
#include "autograd/kernels/simd/xsimd.hpp"

namespace heed {

namespace {

using Doubles = xsimd::batch<double>;
using Floats = xsimd::batch<float>;
using Integers = xsimd::batch<std::int32_t>;
constexpr auto lanes = static_cast<std::int64_t>(Doubles::size);

Doubles load(float const* x) { return Doubles::load_unaligned(x); }

/// Adds Σ z² and Σ z⁴.
void add_moments(std::span<float const> z, double& second, double& fourth) {
  Doubles squares(0.0), fourths(0.0);
  for (std::size_t i = 0; i < z.size(); i += Doubles::size) {
    Doubles const x = load(z.data() + i), square = x * x;
    squares += square;
    fourths += square * square;
  }
  second += xsimd::hadd(squares);
  fourth += xsimd::hadd(fourths);
}

double sum(std::span<double const> x) {
  Doubles total(0.0);
  for (std::size_t i = 0; i < x.size(); i += Doubles::size) total += Doubles::load_unaligned(x.data() + i);
  return xsimd::hadd(total);
}

/// Σ over queries of ‖J K‖²_F = Σ_j p_j² ‖k_j − c‖² with c = Σ_j p_j k_j: a query's gradient without its Jacobian. One group of keys.
class JacobianTimesKeys {
 public:
  JacobianTimesKeys(float const* keys, std::int64_t n, std::int64_t width) : keys_(keys), n_(n), width_(width) {
    gram_.resize(static_cast<std::size_t>(n * n));
    kernels::gemm<float>(n, n, width, 1, {keys, width}, {keys, width, true}, 0, gram_.data(), n);
  }

  /// From the weights [n, queries].
  double operator()(std::vector<float> const& weights, std::int64_t queries) {
    inner_.resize(weights.size());
    multiply(weights.data(), queries);
    float const *const w = weights.data(), *const wk = inner_.data(), *const kk = gram_.data();
    Doubles total(0.0);
    for (std::int64_t i = 0; i < queries; i += lanes) {
      Doubles centre(0.0);
      for (std::int64_t j = 0; j < n_; ++j) centre += load(w + j * queries + i) * load(wk + j * queries + i);
      for (std::int64_t j = 0; j < n_; ++j) {
        Doubles const p = load(w + j * queries + i), inner = load(wk + j * queries + i);
        total += p * p * (Doubles(kk[j * n_ + j]) - inner - inner + centre);
      }
    }
    return xsimd::hadd(total);
  }

 private:
  /// k_j·c by key and query, by whichever of the keys' products and their centres is less work.
  void multiply(float const* weights, std::int64_t queries) {
    if (2 * width_ >= n_) {
      kernels::gemm<float>(n_, queries, n_, 1, {gram_.data(), n_}, {weights, queries}, 0, inner_.data(), queries);
      return;
    }
    centres_.resize(static_cast<std::size_t>(width_ * queries));
    kernels::gemm<float>(width_, queries, n_, 1, {keys_, width_, true}, {weights, queries}, 0, centres_.data(), queries);
    kernels::gemm<float>(n_, queries, width_, 1, {keys_, width_}, {centres_.data(), queries}, 0, inner_.data(), queries);
  }

  float const* keys_;
  std::int64_t n_, width_;
  std::vector<float> gram_, centres_, inner_;
};

/// |q|² by query.
std::vector<double> query_norms(ProductBlock const& block, std::int64_t width) {
  std::vector<double> norms;
  auto const row = static_cast<std::ptrdiff_t>(width);
  for (auto q = block.queries.begin(); q != block.queries.end(); q += row) norms.push_back(std::inner_product(q, q + row, q, 0.0));
  return norms;
}

}  // namespace

std::string name(Quantity quantity) {
  constexpr std::array<char const*, quantities> names{"trace",
                                                      "frobenius_squared",
                                                      "frobenius_median",
                                                      "entropy",
                                                      "max_weight",
                                                      "query_gradient_squared",
                                                      "key_gradient_squared",
                                                      "logit_variance",
                                                      "logit_kurtosis",
                                                      "frobenius_1",
                                                      "frobenius_10",
                                                      "frobenius_90",
                                                      "frobenius_99",
                                                      "frobenius_top"};
  return names[static_cast<std::size_t>(quantity)];
}

// With w_j = e^{z_j − max z}, the largest one (1) left out of r_m = Σ w_j^m, and Z = 1 + r_1:
//   tr J = (2 r_1 + r_1² − r_2)/Z²,   ‖J‖²_F = (r_1² + 2 r_2 + Z² r_2 − 2 Z r_3 + r_2²)/Z⁴,   H = log Z − Σ w_j (z_j − max z)/Z.
void measure_saturation(float const* logits, std::int64_t n, std::int64_t queries, std::int64_t stride, double scale, Saturation& out) {
  auto const size = static_cast<std::size_t>(queries);
  for (auto* each : {&out.trace, &out.frobenius_squared, &out.entropy, &out.max_weight}) each->resize(size);
  out.weights.resize(static_cast<std::size_t>(n) * size);
  Doubles const factor(scale);
  for (std::int64_t i = 0; i < queries; i += lanes) {
    Doubles largest = load(logits + i);
    for (std::int64_t j = 1; j < n; ++j) largest = xsimd::max(largest, load(logits + j * stride + i));
    Doubles r1(0.0), r2(0.0), r3(0.0), weighted(0.0);
    auto found = Doubles(0.0) > Doubles(1.0);
    for (std::int64_t j = 0; j < n; ++j) {
      Doubles const raw = load(logits + j * stride + i), z = factor * (raw - largest);
      auto const top = (raw == largest) & !found;
      found = found | top;
      Doubles const w = xsimd::exp(z);
      w.store_unaligned(&out.weights[static_cast<std::size_t>(j) * size + static_cast<std::size_t>(i)]);
      Doubles const other = xsimd::select(top, Doubles(0.0), w), square = other * other;
      r1 += other;
      r2 += square;
      r3 += square * other;
      weighted += other * z;
    }
    Doubles const total = 1.0 + r1, largest_weight = 1.0 / total, p2 = largest_weight * largest_weight;
    auto const at = static_cast<std::size_t>(i);
    ((2.0 * r1 + r1 * r1 - r2) * p2).store_unaligned(&out.trace[at]);
    ((r1 * r1 + 2.0 * r2 + total * total * r2 - 2.0 * total * r3 + r2 * r2) * p2 * p2).store_unaligned(&out.frobenius_squared[at]);
    (xsimd::log1p(r1) - weighted * largest_weight).store_unaligned(&out.entropy[at]);
    largest_weight.store_unaligned(&out.max_weight[at]);
    for (std::int64_t j = 0; j < n; ++j) {
      float* const p = &out.weights[static_cast<std::size_t>(j) * size + at];
      (load(p) * largest_weight).store_unaligned(p);
    }
  }
}

void draw(Law law, Stream const& stream, std::span<float> out) {
  std::array<std::uint32_t, 1024> words;
  constexpr float unit = 0x1p-31F;
  for (std::size_t begin = 0; begin < out.size(); begin += words.size()) {
    auto const count = std::min(words.size(), out.size() - begin);
    stream.words(begin / 4, std::span(words).first(count));
    auto const integers = [&](std::size_t i) { return Integers::load_unaligned(reinterpret_cast<std::int32_t const*>(words.data()) + i); };
    auto const uniform = [&](std::size_t i) { return xsimd::to_float(integers(i)) * unit; };  // in [−1, 1]
    float* const x = out.data() + begin;
    for (std::size_t i = 0; i < count; i += 2 * Floats::size) {
      std::size_t const j = i + Floats::size;
      if (law == Law::uniform) {
        (uniform(i) * std::numbers::sqrt3_v<float>).store_unaligned(x + i);
        (uniform(j) * std::numbers::sqrt3_v<float>).store_unaligned(x + j);
      } else if (law == Law::rademacher) {
        for (std::size_t const k : {i, j}) xsimd::select(uniform(k) < Floats(0.0F), Floats(-1.0F), Floats(1.0F)).store_unaligned(x + k);
      } else {
        Floats const first = xsimd::to_float((integers(i) & Integers(0x7FFFFFFF)) | Integers(1)) * unit;  // in (0, 1]
        Floats const radius = xsimd::sqrt(-2.0F * xsimd::log(first));
        auto const [sine, cosine] = xsimd::sincos(uniform(j) * std::numbers::pi_v<float>);
        (radius * cosine).store_unaligned(x + i);
        (radius * sine).store_unaligned(x + j);
      }
    }
  }
}

BlockShape BlockShape::of(std::int64_t width, std::int64_t n) {
  std::int64_t const side = std::clamp<std::int64_t>(4 * width, 32, 256);
  std::int64_t const groups = std::max<std::int64_t>(1, side / n);
  return {width, n, (side + 31) / 32 * 32, n * groups};
}

std::int64_t BlockShape::first_query(std::int64_t first_key) const {
  if (!place) return 0;
  std::int64_t const first = std::max<std::int64_t>(0, first_key + n - 1 - *place);
  return std::min(queries, (first + 15) / 16 * 16);
}

std::int64_t BlockShape::rows() const {
  std::int64_t count = 0;
  for (std::int64_t first = 0; first + n <= keys; first += n) count += queries - first_query(first);
  return count;
}

ProductBlock draw_block(Law law, BlockShape const& shape, Stream const& stream) {
  ProductBlock block;
  if (law == Law::logits) {
    block.products.resize(static_cast<std::size_t>(shape.logits()));
    draw(law, stream, block.products);
    auto const deviation = static_cast<float>(std::sqrt(static_cast<double>(shape.width)));
    for (float& z : block.products) z *= deviation;
    return block;
  }
  block.queries.resize(static_cast<std::size_t>(shape.queries * shape.width));
  block.keys.resize(static_cast<std::size_t>((shape.keys * shape.width + 31) / 32 * 32));
  draw(law, stream.child("queries"), block.queries);
  draw(law, stream.child("keys"), block.keys);
  multiply(block, shape);
  return block;
}

void multiply(ProductBlock& block, BlockShape const& shape) {
  auto const d = shape.width;
  block.products.resize(static_cast<std::size_t>(shape.logits()));
  kernels::gemm<float>(shape.keys, shape.queries, d, 1, {block.keys.data(), d}, {block.queries.data(), d, true}, 0, block.products.data(),
                       shape.queries);
}

std::vector<BlockMeans> measure_block(ProductBlock const& block, BlockShape const& shape, Wanted const& wanted) {
  bool const gradients = wanted.gradients && !block.queries.empty();
  auto const norms = gradients ? query_norms(block, shape.width) : std::vector<double>();
  auto const rows = static_cast<double>(shape.rows()), logits = rows * static_cast<double>(shape.n);

  std::vector<BlockMeans> result(wanted.scales.size());
  for (auto& each : result) each.frobenius.reserve(static_cast<std::size_t>(shape.rows()));
  Saturation measured;
  double second = 0, fourth = 0;
  for (std::int64_t first = 0; first + shape.n <= shape.keys; first += shape.n) {
    std::int64_t const begin = shape.first_query(first), count = shape.queries - begin;
    if (count == 0) continue;
    float const* const z = block.products.data() + first * shape.queries + begin;
    for (std::int64_t j = 0; j < shape.n; ++j) add_moments({z + j * shape.queries, static_cast<std::size_t>(count)}, second, fourth);
    std::optional<JacobianTimesKeys> by_query;
    if (gradients) by_query.emplace(block.keys.data() + first * shape.width, shape.n, shape.width);
    for (std::size_t k = 0; k < wanted.scales.size(); ++k) {
      double const scale = wanted.scales[k];
      auto const mean = [&](Quantity q) -> double& { return result[k].means[static_cast<std::size_t>(q)]; };
      measure_saturation(z, shape.n, count, shape.queries, scale, measured);
      mean(Quantity::trace) += sum(measured.trace) / rows;
      mean(Quantity::frobenius_squared) += sum(measured.frobenius_squared) / rows;
      mean(Quantity::entropy) += sum(measured.entropy) / rows;
      mean(Quantity::max_weight) += sum(measured.max_weight) / rows;
      for (double const j2 : measured.frobenius_squared) result[k].frobenius.push_back(static_cast<float>(std::sqrt(j2)));
      if (!gradients) continue;
      mean(Quantity::query_gradient_squared) += scale * scale * (*by_query)(measured.weights, count) / rows;
      double const key_gradient = std::inner_product(measured.frobenius_squared.begin(), measured.frobenius_squared.end(),
                                                     norms.begin() + static_cast<std::ptrdiff_t>(begin), 0.0);
      mean(Quantity::key_gradient_squared) += scale * scale * key_gradient / rows;
    }
  }
  for (std::size_t k = 0; k < wanted.scales.size(); ++k) {
    double const square = wanted.scales[k] * wanted.scales[k];
    result[k].means[static_cast<std::size_t>(Quantity::logit_variance)] = square * second / logits;
    result[k].means[static_cast<std::size_t>(Quantity::logit_kurtosis)] = square * square * fourth / logits;
  }
  return result;
}

}  // namespace heed
