// Normalisation over the last axis. The kernels make one pass over a row that stays in the first-level cache.

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "autograd/elementwise.hpp"
#include "autograd/kernels/dispatch.hpp"
#include "autograd/kernels/rows.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/ops/softmax.hpp"
#include "autograd/parallel.hpp"

namespace heed {

namespace {

using kernels::Lanes;

/// Row statistics of the normalised x̂ = (x − mean)·scale, kept for the backward pass; rms_norm has no mean.
struct Statistics {
  Tensor mean;   ///< [rows] or undefined
  Tensor scale;  ///< [rows]: 1/√(variance + eps)
};

/// The mean and 1/√(mean square + eps) of any row; one whose squares leave the range of numbers is divided by its largest element.
template <class T>
[[gnu::noinline]] std::pair<T, T> mean_and_scale(T const* row, Index n, bool centred, double eps) {
  auto const count = static_cast<T>(n);
  auto const moments = [&](T const* x) {  // the mean (0 if not `centred`), and the mean square of the distances from it
    T const mean = centred ? kernels::total_row(x, n) / count : T(0);
    Lanes<T> const center(mean);
    // Elements beyond the row are taken out of the sum's tail one by one, so (0 − mean)² does not enter.
    return std::pair(mean, kernels::sum_row<T>(
                               n, [&](auto v) { return (v - center) * (v - center); }, x) /
                               count);
  };
  auto const [mean, square] = moments(row);
  if (std::isfinite(square)) return {mean, T(1) / std::sqrt(square + static_cast<T>(eps))};
  T largest = 0;
  for (Index i = 0; i < n; ++i) largest = std::max(largest, std::abs(row[i]));
  std::vector<T> part(row, row + n);
  for (T& v : part) v /= largest;
  auto const [mean_of_part, square_of_part] = moments(part.data());
  return {largest * mean_of_part, T(1) / std::sqrt(square_of_part) / largest};
}

/// y of any row; returns its mean and factor. For short rows forward() has the same loops: calls would cost a quarter of the time.
template <class T>
[[gnu::noinline]] std::pair<T, T> normalise_any_row(T const* row, bool centred, double eps, T const* weight, T const* bias, T* out,
                                                    Index n) {
  auto const [mean, factor] = mean_and_scale(row, n, centred, eps);
  for (Index i = 0; i < n; ++i) out[i] = (row[i] - mean) * factor * weight[i];
  for (Index i = 0; bias != nullptr && i < n; ++i) out[i] += bias[i];
  return {mean, factor};
}

/// y = x̂·weight + bias.
template <class T>
void forward(Tensor const& x, Tensor const& weight, Tensor const& bias, double eps, Tensor& y, Statistics& s) {
  Index const n = x.size(-1);
  T const* const in = x.data<T>().data();
  T const* const w = weight.data<T>().data();
  T const* const b = bias.defined() ? bias.data<T>().data() : nullptr;
  T* const out = y.mutable_data<T>().data();
  T* const means = s.mean.defined() ? s.mean.mutable_data<T>().data() : nullptr;
  T* const scales = s.scale.mutable_data<T>().data();
  bool const short_rows = n <= kernels::row_of_partial_sum;
  parallel_for(
      s.scale.elements(), 3 * arithmetic_cost * static_cast<double>(n),
      [&](Index begin, Index end) {
        bool all = short_rows;
        for (Index r = begin; short_rows && r < end; ++r) {
          T const* const row = in + r * n;
          T const mean = means != nullptr ? kernels::sum_short_row<T>(
                                                n, [](auto v) { return v; }, row) /
                                                static_cast<T>(n)
                                          : T(0);
          Lanes<T> const center(mean);
          T const square = kernels::sum_short_row<T>(
                               n, [&](auto v) { return (v - center) * (v - center); }, row) /
                           static_cast<T>(n);
          T const factor = T(1) / std::sqrt(square + static_cast<T>(eps));
          all = all && factor > 0;
          if (means != nullptr) means[r] = mean;
          scales[r] = factor;
          Lanes<T> const scale(factor);
          if (b != nullptr) {
            kernels::transform_row<T>(
                out + r * n, n, [&](auto v, auto wv, auto bv) { return (v - center) * scale * wv + bv; }, row, w, b);
          } else {
            kernels::transform_row<T>(
                out + r * n, n, [&](auto v, auto wv) { return (v - center) * scale * wv; }, row, w);
          }
        }
        // Long rows, and those whose squares are infinite or no numbers.
        for (Index r = begin; !all && r < end; ++r) {
          if (short_rows && scales[r] > 0) continue;
          auto const [mean, factor] = normalise_any_row(in + r * n, means != nullptr, eps, w, b, out + r * n, n);
          if (means != nullptr) means[r] = mean;
          scales[r] = factor;
        }
      },
      1, Cut::fine);
}

/// With g = dy·weight: dx = scale (g − [mean g] − x̂ mean(g x̂)); dweight = Σ_rows dy x̂; dbias = Σ_rows dy, if there is a bias.
/// `adds`: dx is added to. Rows are cut into as many stretches whatever the number of threads is, each of so few rows that their sum one
/// after another is exact enough; the stretches' sums are added in pairs.
template <class T>
void backward(Tensor const& x, Tensor const& weight, Tensor const& dy, Statistics const& s, Tensor& dx, bool adds, Tensor& dweight,
              Tensor* dbias) {
  Index const n = x.size(-1);
  Index const rows = s.scale.elements();
  constexpr Index rows_of_stretch = 64;
  Index const stretches = std::max<Index>(16, (rows + rows_of_stretch - 1) / rows_of_stretch);
  constexpr Index ahead = 2048 / sizeof(T);  // prefetched: the processor's own prefetching stops at every page
  Tensor weight_parts = Tensor::zeros({stretches, n}, x.dtype());
  Tensor bias_parts = dbias != nullptr ? Tensor::zeros({stretches, n}, x.dtype()) : Tensor();
  T const* const in = x.data<T>().data();
  T const* const w = weight.data<T>().data();
  T const* const gradient = dy.data<T>().data();
  T const* const means = s.mean.defined() ? s.mean.data<T>().data() : nullptr;
  T const* const scales = s.scale.data<T>().data();
  T* const out = dx.mutable_data<T>().data();
  T* const dweights = weight_parts.mutable_data<T>().data();
  T* const dbiases = dbias != nullptr ? bias_parts.mutable_data<T>().data() : nullptr;
  parallel_each(stretches, 6 * arithmetic_cost * static_cast<double>(n * rows / stretches), [&](Index k) {
    T* const dw = dweights + k * n;
    T* const db = dbiases + (dbiases != nullptr ? k * n : 0);
    for (Index r = rows * k / stretches; r < rows * (k + 1) / stretches; ++r) {
      T const* const row = in + r * n;
      T const* const g = gradient + r * n;
      T* const to = out + r * n;
      Lanes<T> const center(means != nullptr ? means[r] : T(0));
      Lanes<T> const scale(scales[r]);
      Lanes<T> sum_g(T(0)), sum_gx(T(0));
      kernels::each_batch<T>(n, [&](Index i, auto const& batch) {
        __builtin_prefetch(g + i + ahead);
        __builtin_prefetch(row + i + ahead);
        __builtin_prefetch(to + i + ahead, 1);
        Lanes<T> const gw = batch.load(g + i) * batch.load(w + i);
        sum_g += gw;
        sum_gx = xsimd::fma(gw, (batch.load(row + i) - center) * scale, sum_gx);
      });
      Lanes<T> const mean_g(means != nullptr ? kernels::lane_sum(sum_g) / static_cast<T>(n) : T(0));
      Lanes<T> const mean_gx(kernels::lane_sum(sum_gx) / static_cast<T>(n));
      kernels::each_batch<T>(n, [&](Index i, auto const& batch) {
        Lanes<T> const dy_i = batch.load(g + i), normal = (batch.load(row + i) - center) * scale;
        Lanes<T> const slope = scale * (dy_i * batch.load(w + i) - mean_g - normal * mean_gx);
        batch.store(adds ? batch.load(to + i) + slope : slope, to + i);
        batch.store(xsimd::fma(dy_i, normal, batch.load(dw + i)), dw + i);
        if (db != nullptr) batch.store(dy_i + batch.load(db + i), db + i);
      });
    }
  });
  dweight = sum(weight_parts, {0});
  if (dbias != nullptr) *dbias = sum(bias_parts, {0});
}

Tensor normalise(char const* operation, Tensor const& x, Tensor const& weight, Tensor const& bias, double eps, bool centred,
                 std::function<Tensor(std::vector<Tensor> const&)> const& reference) {
  require_same_real(operation, x, weight);
  if (x.rank() == 0 || weight.shape() != Shape{x.size(-1)} || (bias.defined() && bias.shape() != weight.shape()))
    throw Error(fmt::format("{}: x {}, weight {}, bias {}: the last two must be [last extent of x]", operation, to_string(x.shape()),
                            to_string(weight.shape()), bias.defined() ? to_string(bias.shape()) : "none"));
  Index const n = x.size(-1);
  Index const rows = n == 0 ? 0 : x.elements() / n;
  Statistics statistics{centred ? Tensor({rows}, x.dtype()) : Tensor(), Tensor({rows}, x.dtype())};
  Tensor y(x.shape(), x.dtype());
  kernels::with_real(x.dtype(), [&](auto type) { forward<decltype(type)>(x, weight, bias, eps, y, statistics); });
  if (!records(x, weight, bias)) return y;
  y = record_fused(
      operation, {x, weight, bias}, std::move(y), Keep{.inputs = all_inputs, .sum = true},
      [statistics](BackwardContext const& s) {
        bool const adds = s.into != nullptr;
        Tensor dx = adds ? *s.into : Tensor(s.x(0).shape(), s.dy.dtype());
        Tensor dweight, dbias;
        kernels::with_real(s.dy.dtype(), [&](auto type) {
          backward<decltype(type)>(s.x(0), s.x(1), s.dy, statistics, dx, adds, dweight, s.wants(2) ? &dbias : nullptr);
        });
        return std::vector{dx, dweight, dbias};
      },
      reference,
      [reference](BackwardContext const& s, std::vector<Tensor> const& u) {
        return second_by_rows([&](std::vector<Tensor> const& in, Index) { return reference(in); }, s, u);
      });
  return recomputable(std::move(y), [eps, statistics](std::vector<Tensor> const& in) {
    Tensor again(in[0].shape(), in[0].dtype());
    Statistics same = statistics;
    kernels::with_real(again.dtype(), [&](auto type) { forward<decltype(type)>(in[0], in[1], in[2], eps, again, same); });
    return again;
  });
}

}  // namespace

Tensor layer_norm(Tensor const& x, Tensor const& weight, Tensor const& bias, double eps) {
  return normalise("layer_norm", x, weight, bias, eps, true, [eps](std::vector<Tensor> const& in) {
    Tensor const deviation = in[0] - mean(in[0], {-1}, true);
    Tensor const y = deviation * rsqrt(mean(deviation * deviation, {-1}, true) + eps) * in[1];
    return in[2].defined() ? y + in[2] : y;
  });
}

Tensor rms_norm(Tensor const& x, Tensor const& weight, double eps) {
  return normalise("rms_norm", x, weight, {}, eps, false,
                   [eps](std::vector<Tensor> const& in) { return in[0] * rsqrt(mean(in[0] * in[0], {-1}, true) + eps) * in[1]; });
}

}  // namespace heed
