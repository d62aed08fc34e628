#include "experiments/study/saturation.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "autograd/blas/products.hpp"
#include "autograd/kernels/simd/xsimd.hpp"

namespace heed {

namespace {

using Doubles = xsimd::batch<double>;
using Floats = xsimd::batch<float>;
using Integers = xsimd::batch<std::int32_t>;
constexpr auto lanes = static_cast<Index>(Doubles::size), wide = static_cast<Index>(Floats::size);

Doubles load(float const* x) { return Doubles::load_unaligned(x); }

/// Adds Σ z² and Σ z⁴.
void add_moments(std::span<float const> z, double& second, double& fourth) {
  Doubles squares(0.0), fourths(0.0);
  for (std::size_t i = 0; i < z.size(); i += Doubles::size) {
    Doubles const x = load(z.data() + i), square = x * x;
    squares += square;
    fourths += square * square;
  }
  second += kernels::lane_sum(squares);
  fourth += kernels::lane_sum(fourths);
}

double sum(std::span<double const> x) {
  Doubles total(0.0);
  for (std::size_t i = 0; i < x.size(); i += Doubles::size) total += Doubles::load_unaligned(x.data() + i);
  return kernels::lane_sum(total);
}

/// ‖J K‖²_F by query: a query's gradient without its scale. One group of keys. With the largest weight p_t apart and the others relative to
/// the second, p_j = e u_j, so that nothing cancels where p_t is nearly 1. Of few components κ_j = k_j − k_t, m = Σ_j u_j κ_j:
///   ‖J K‖² = e² {Σ_j u_j² ‖κ_j − e m‖² + p_t² ‖m‖²},
/// of many the same by D_ij = ‖k_i − k_j‖², because ‖J K‖² = ½ Σ_ij p_i p_j (p_i + p_j − Σp²) D_ij:
///   = e² {p_t [(p_t Σu − e Σu²) Σ_j u_j D_tj + Σ_j u_j² D_tj] + Σ_j u_j (e u_j − ½ Σp²) Σ_i D_ji u_i}.
class JacobianTimesKeys {
 public:
  JacobianTimesKeys(float const* keys, Index n, Index width) : keys_(keys), n_(n), width_(width), few_(3 * width < n) {
    if (few_) return;
    distances_.resize(static_cast<std::size_t>(n * n));
    float* const d = distances_.data();
    kernels::gemm<float>(n, n, width, 1, {keys, width}, {keys, width, true}, 0, d, n);
    std::vector<float> squares;
    for (Index i = 0; i < n; ++i) squares.push_back(d[i * n + i]);
    for (Index i = 0; i < n; ++i) {
      for (Index j = 0; j < n; ++j) {
        float& each = d[i * n + j];
        each = i == j ? 0 : std::max(0.0F, heed::at(squares, i) + heed::at(squares, j) - 2 * each);
      }
    }
  }

  void operator()(Saturation const& measured, std::vector<double>& squares) {
    auto const queries = static_cast<Index>(measured.trace.size());
    squares.resize(measured.trace.size());
    if (!few_) {
      around_.resize(measured.others.size());
      kernels::gemm<float>(n_, queries, n_, 1, {distances_.data(), n_}, {measured.others.data(), queries}, 0, around_.data(), queries);
    }
    for (Index i = 0; i < queries; i += wide) {
      auto const at = static_cast<std::size_t>(i);
      Lanes relative;
      xsimd::max(few_ ? by_components(measured, at) : by_distances(measured, at), Floats(0.0F)).store_unaligned(relative.data());
      for (std::size_t lane = 0; lane < relative.size(); ++lane) {
        auto const e = static_cast<double>(measured.second[at + lane]);
        squares[at + lane] = e * e * static_cast<double>(relative[lane]);
      }
    }
  }

 private:
  using Lanes = std::array<float, static_cast<std::size_t>(wide)>;

  /// Entry `column` of the row of each lane's largest key.
  Floats of_top(Saturation const& measured, std::size_t at, float const* rows, Index columns, Index column) const {
    Lanes entries;
    for (std::size_t lane = 0; lane < entries.size(); ++lane)
      entries[lane] = rows[static_cast<Index>(measured.top[at + lane]) * columns + column];
    return Floats::load_unaligned(entries.data());
  }

  Floats by_components(Saturation const& measured, std::size_t at) const {
    std::size_t const queries = measured.trace.size();
    Floats const largest = Floats::load_unaligned(&measured.largest[at]), second = Floats::load_unaligned(&measured.second[at]);
    auto const u = [&](Index j) { return Floats::load_unaligned(&measured.others[static_cast<std::size_t>(j) * queries + at]); };
    Floats sum(0.0F);
    for (Index c = 0; c < width_; ++c) {
      auto const key = [&](Index j) { return Floats(keys_[j * width_ + c]); };
      Floats const top = of_top(measured, at, keys_, width_, c);
      Floats mean(0.0F), squares(0.0F);
      for (Index j = 0; j < n_; ++j) mean += u(j) * (key(j) - top);
      Floats const centre = top + second * mean;
      for (Index j = 0; j < n_; ++j) {
        Floats const each = u(j) * (key(j) - centre);
        squares += each * each;
      }
      sum += squares + largest * largest * mean * mean;
    }
    return sum;
  }

  Floats by_distances(Saturation const& measured, std::size_t at) const {
    std::size_t const queries = measured.trace.size();
    Floats const largest = Floats::load_unaligned(&measured.largest[at]), second = Floats::load_unaligned(&measured.second[at]);
    Floats u1(0.0F), u2(0.0F), ud(0.0F), u2d(0.0F), with_squares(0.0F), without(0.0F);
    for (Index j = 0; j < n_; ++j) {
      auto const entry = static_cast<std::size_t>(j) * queries + at;
      Floats const u = Floats::load_unaligned(&measured.others[entry]), square = u * u;
      Floats const d = of_top(measured, at, distances_.data(), n_, j), spread = u * Floats::load_unaligned(&around_[entry]);
      u1 += u;
      u2 += square;
      ud += u * d;
      u2d += square * d;
      with_squares += u * spread;
      without += spread;
    }
    Floats const all = largest * largest + second * second * u2;  // Σp²
    return largest * ((largest * u1 - second * u2) * ud + u2d) + second * with_squares - 0.5F * all * without;
  }

  float const* keys_;
  Index n_, width_;
  bool few_;
  std::vector<float> distances_, around_;  ///< [n, n]; Σ_i D_ji u_i, [n, queries]
};

/// |q|² by query.
std::vector<double> query_norms(ProductBlock const& block, Index width) {
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
                                                      "frobenius_top",
                                                      "query_gradient_1",
                                                      "query_gradient_10",
                                                      "query_gradient_median",
                                                      "query_gradient_90",
                                                      "query_gradient_99",
                                                      "query_gradient_top",
                                                      "query_weights_gradient"};
  return heed::at(names, quantity);
}

// With w_j = e^{z_j − max z}, the largest one (1) left out of r_m = Σ w_j^m, and Z = 1 + r_1:
//   tr J = (2 r_1 + r_1² − r_2)/Z²,   ‖J‖²_F = (r_1² + 2 r_2 + Z² r_2 − 2 Z r_3 + r_2²)/Z⁴,   H = log Z − Σ w_j (z_j − max z)/Z.
// The w_j are e^{−gap} u_j, gap the distance of the two largest logits and u_j ≤ 1: the u_j and their sums are floats, all else is double.
void measure_saturation(float const* logits, Index n, Index queries, Index stride, double scale, bool others, Saturation& out) {
  auto const size = static_cast<std::size_t>(queries);
  for (auto* each : {&out.trace, &out.frobenius_squared, &out.entropy, &out.max_weight}) each->resize(size);
  if (others) {
    for (auto* each : {&out.top, &out.largest, &out.second}) each->resize(size);
    out.others.resize(static_cast<std::size_t>(n) * size);
  }
  Floats const factor(static_cast<float>(std::abs(scale))), sign(scale < 0 ? -1.0F : 1.0F),
      infinite(std::numeric_limits<float>::infinity());
  std::array<float, static_cast<std::size_t>(wide)> gaps, sums, squares, cubes, weighted;
  for (Index i = 0; i < queries; i += wide) {
    auto const at = static_cast<std::size_t>(i);
    Floats largest = -infinite, second = -infinite, top(0.0F);
    for (Index j = 0; j < n; ++j) {
      Floats const x = sign * Floats::load_unaligned(logits + j * stride + i);
      top = xsimd::select(x > largest, Floats(static_cast<float>(j)), top);
      second = xsimd::max(second, xsimd::min(largest, x));
      largest = xsimd::max(largest, x);
    }
    Floats r1(0.0F), r2(0.0F), r3(0.0F), below(0.0F);
    for (Index j = 0; j < n; ++j) {
      Floats const z = factor * (sign * Floats::load_unaligned(logits + j * stride + i) - second);
      Floats const u = xsimd::select(top == Floats(static_cast<float>(j)), Floats(0.0F), xsimd::exp(xsimd::min(z, Floats(0.0F))));
      Floats const square = u * u;
      r1 += u;
      r2 += square;
      r3 += square * u;
      below += u * z;
      if (others) u.store_unaligned(&out.others[static_cast<std::size_t>(j) * size + at]);
    }
    (factor * (largest - second)).store_unaligned(gaps.data());
    r1.store_unaligned(sums.data());
    r2.store_unaligned(squares.data());
    r3.store_unaligned(cubes.data());
    below.store_unaligned(weighted.data());
    if (others) top.store_unaligned(&out.top[at]);
    for (Index k = 0; k < wide; k += lanes) {
      auto const lane = static_cast<std::size_t>(k);
      Doubles const gap = load(&gaps[lane]), e = xsimd::exp(-gap), u1 = load(&sums[lane]);
      Doubles const s1 = e * u1, s2 = e * e * load(&squares[lane]), s3 = e * e * e * load(&cubes[lane]);
      Doubles const total = 1.0 + s1, p = 1.0 / total, p2 = p * p;
      ((2.0 * s1 + s1 * s1 - s2) * p2).store_unaligned(&out.trace[at + lane]);
      ((s1 * s1 + 2.0 * s2 + total * total * s2 - 2.0 * total * s3 + s2 * s2) * p2 * p2).store_unaligned(&out.frobenius_squared[at + lane]);
      (xsimd::log1p(s1) - e * (load(&weighted[lane]) - gap * u1) * p).store_unaligned(&out.entropy[at + lane]);
      p.store_unaligned(&out.max_weight[at + lane]);
      if (!others) continue;
      p.store_unaligned(&out.largest[at + lane]);
      (e * p).store_unaligned(&out.second[at + lane]);
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

BlockShape BlockShape::of(Index width, Index n, Index most) {
  Index const side = std::clamp<Index>(4 * width, 32, most);
  Index const groups = std::max<Index>(1, std::min(4 * width, 2 * side) / n);
  return {width, n, (side + 31) / 32 * 32, n * groups};
}

Index BlockShape::first_query(Index first_key) const {
  if (!first_position) return 0;
  Index const first = std::max<Index>(0, first_key + n - 1 - *first_position);
  return std::min(queries, (first + 15) / 16 * 16);
}

Index BlockShape::rows() const {
  Index count = 0;
  for (Index first = 0; first + n <= keys; first += n) count += queries - first_query(first);
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
  // Of two keys both would have the same weights, turned.
  std::vector<double> const signs = wanted.mirrored && shape.n > 2 ? std::vector{1.0, -1.0} : std::vector{1.0};
  auto const pairs = static_cast<double>(shape.rows()), rows = pairs * static_cast<double>(signs.size()),
             logits = pairs * static_cast<double>(shape.n);

  std::vector<BlockMeans> result(wanted.scales.size());
  for (auto& each : result) {
    each.frobenius.reserve(static_cast<std::size_t>(rows));
    if (gradients) each.query_gradient.reserve(static_cast<std::size_t>(rows));
  }
  Saturation measured;
  std::vector<double> by_query;
  double second = 0, fourth = 0;
  for (Index first = 0; first + shape.n <= shape.keys; first += shape.n) {
    Index const begin = shape.first_query(first), count = shape.queries - begin;
    if (count == 0) continue;
    float const* const z = block.products.data() + first * shape.queries + begin;
    for (Index j = 0; j < shape.n; ++j) add_moments({z + j * shape.queries, static_cast<std::size_t>(count)}, second, fourth);
    std::optional<JacobianTimesKeys> jacobian_times_keys;
    if (gradients) jacobian_times_keys.emplace(block.keys.data() + first * shape.width, shape.n, shape.width);
    for (std::size_t k = 0; k < wanted.scales.size(); ++k) {
      double const scale = wanted.scales[k];
      auto const mean = [&](Quantity q) -> double& { return heed::at(result[k].means, q); };
      for (double const sign : signs) {
        measure_saturation(z, shape.n, count, shape.queries, sign * scale, gradients, measured);
        mean(Quantity::trace) += sum(measured.trace) / rows;
        mean(Quantity::frobenius_squared) += sum(measured.frobenius_squared) / rows;
        mean(Quantity::entropy) += sum(measured.entropy) / rows;
        mean(Quantity::max_weight) += sum(measured.max_weight) / rows;
        for (double const j2 : measured.frobenius_squared) result[k].frobenius.push_back(static_cast<float>(std::sqrt(j2)));
        if (!gradients) continue;
        (*jacobian_times_keys)(measured, by_query);
        mean(Quantity::query_gradient_squared) += scale * scale * sum(by_query) / rows;
        for (double const square : by_query) result[k].query_gradient.push_back(static_cast<float>(scale * std::sqrt(square)));
        double const key_gradient = std::inner_product(measured.frobenius_squared.begin(), measured.frobenius_squared.end(),
                                                       norms.begin() + static_cast<std::ptrdiff_t>(begin), 0.0);
        mean(Quantity::key_gradient_squared) += scale * scale * key_gradient / rows;
      }
    }
  }
  for (std::size_t k = 0; k < wanted.scales.size(); ++k) {
    double const square = wanted.scales[k] * wanted.scales[k];
    heed::at(result[k].means, Quantity::logit_variance) = square * second / logits;
    heed::at(result[k].means, Quantity::logit_kurtosis) = square * square * fourth / logits;
  }
  return result;
}

}  // namespace heed
