#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "autograd/kernels/elementary.hpp"
#include "autograd/kernels/simd.hpp"
#include "autograd/random.hpp"

/// Loops over one contiguous row, in xsimd batches. The order of summation is fixed (four accumulators, then lanes, then parts of a long
/// row pairwise), so that the result depends on the row's content and length alone.
namespace heed::kernels {

/// Adds partial sums along a binary tree, so that the rounding error grows with the logarithm of their number (Higham 1993). A sum's place
/// in the tree depends on its number alone; missing ones count as 0, so that leaving out sums of zeros changes no bit. `Partial` needs +=.
template <class Partial>
class PairwiseSum {
 public:
  /// Adds partial sum `number`, which fill(partial) writes; numbers must increase.
  template <class Fill>
  void add_made(std::uint64_t number, Fill const& fill) {
    while (depth_ > 1 && apart(numbers_[depth_ - 2], numbers_[depth_ - 1]) < apart(numbers_[depth_ - 1], number)) merge();
    numbers_[depth_] = number;
    fill(levels_[depth_++]);
  }
  void add(std::uint64_t number, Partial const& partial) {
    add_made(number, [&](Partial& to) { to = partial; });
  }
  /// The total; `none` if nothing was added.
  Partial total(Partial const& none) {
    while (depth_ > 1) merge();
    return depth_ == 0 ? none : levels_[0];
  }

 private:
  /// The level of the tree at which two partial sums meet.
  static auto apart(std::uint64_t a, std::uint64_t b) { return std::bit_width(a ^ b); }  // the library decides its type
  void merge() {
    --depth_;
    levels_[depth_ - 1] += levels_[depth_];
  }

  std::array<Partial, 65> levels_;  // each covers more than the next one
  std::array<std::uint64_t, 65> numbers_;
  std::size_t depth_ = 0;
};

/// Columns of a partial sum, which fit a few registers.
inline constexpr Index columns_at_once = 64;
template <class T>
struct Columns {
  alignas(64) T values[columns_at_once];
  Columns& operator+=(Columns const& other) {
    for (Index c = 0; c < columns_at_once; ++c) values[c] += other.values[c];
    return *this;
  }
};

/// Rows that are added one after another before pairwise summation.
inline constexpr Index rows_of_partial_sum = 32;

/// out[i] = f(x[i]…) for n elements; the sources and `out` may be the same.
template <class T, class F, class... X>
void transform_row(T* out, Index n, F const& f, X const*... x) {
  Index i = 0;
  for (; i + lanes<T> <= n; i += lanes<T>) f(Lanes<T>::load_unaligned(x + i)...).store_unaligned(out + i);
  if (i < n) store_some<T>(f(load_some<T>(x + i, n - i, T(0))...), out + i, n - i);
}

/// A batch of a row, possibly partial: numbers beyond the end are read as 0 and not written.
template <class T>
struct WholeBatch {
  Lanes<T> load(T const* x) const { return Lanes<T>::load_unaligned(x); }
  void store(Lanes<T> const& v, T* x) const { v.store_unaligned(x); }
};
template <class T>
struct PartBatch {
  Index count;
  Lanes<T> load(T const* x) const { return load_some<T>(x, count, T(0)); }
  void store(Lanes<T> const& v, T* x) const { store_some<T>(v, x, count); }
};

/// Calls f(i, batch) for every batch of a row of n, i the index of its first element; for work on several rows at once.
template <class T, class F>
void each_batch(Index n, F const& f) {
  Index i = 0;
  for (; i + lanes<T> <= n; i += lanes<T>) f(i, WholeBatch<T>{});
  if (i < n) f(i, PartBatch<T>{n - i});
}

/// Σ f(x[i]…) of a row that is one partial sum. f of the fill value must not be NaN; elements beyond the row are masked out.
template <class T, class F, class... X>
[[gnu::always_inline]] inline T sum_short_row(Index n, F const& f, X const*... x) {
  constexpr Index step = lanes<T>;
  Lanes<T> a(T(0)), b(T(0)), c(T(0)), d(T(0));
  Index i = 0;
  for (; i + 4 * step <= n; i += 4 * step) {
    a += f(Lanes<T>::load_unaligned(x + i)...);
    b += f(Lanes<T>::load_unaligned(x + i + step)...);
    c += f(Lanes<T>::load_unaligned(x + i + 2 * step)...);
    d += f(Lanes<T>::load_unaligned(x + i + 3 * step)...);
  }
  for (; i + step <= n; i += step) a += f(Lanes<T>::load_unaligned(x + i)...);
  if (i < n) b += keep_some<T>(f(load_some<T>(x + i, n - i, T(0))...), n - i);
  return lane_sum((a + b) + (c + d));
}

/// Numbers per partial sum of a longer row.
inline constexpr Index row_of_partial_sum = 4096;

/// Σ of part(first, count) over a row's parts, pairwise.
template <class T, class Part>
[[gnu::noinline]] T sum_in_parts(Index n, Part const& part) {
  PairwiseSum<T> sum;
  for (Index i = 0; i < n; i += row_of_partial_sum)
    sum.add(static_cast<std::uint64_t>(i / row_of_partial_sum), part(i, std::min(row_of_partial_sum, n - i)));
  return sum.total(T(0));
}

/// Σ f(x[i]…) of a row of any length.
template <class T, class F, class... X>
T sum_row(Index n, F const& f, X const*... x) {
  if (n <= row_of_partial_sum) return sum_short_row<T>(n, f, x...);
  return sum_in_parts<T>(n, [&](Index first, Index count) { return sum_short_row<T>(count, f, (x + first)...); });
}

/// Σ x[i].
template <class T>
T total_row(T const* x, Index n) {
  return sum_row<T>(
      n, [](auto const& v) { return v; }, x);
}

/// max x[i], NaN if any is; −∞ for an empty row. (A batch's max can lose a NaN, so NaN is tested separately.)
template <class T>
T max_row(T const* x, Index n) {
  Lanes<T> const lowest(-std::numeric_limits<T>::infinity());
  Lanes<T> a = lowest, b = lowest;
  auto nan = xsimd::isnan(lowest);
  auto const take = [&](Lanes<T>& into, Lanes<T> const& v) {
    into = xsimd::max(into, v);
    nan = nan | xsimd::isnan(v);
  };
  Index i = 0;
  for (; i + 2 * lanes<T> <= n; i += 2 * lanes<T>) {
    take(a, Lanes<T>::load_unaligned(x + i));
    take(b, Lanes<T>::load_unaligned(x + i + lanes<T>));
  }
  for (; i + lanes<T> <= n; i += lanes<T>) take(a, Lanes<T>::load_unaligned(x + i));
  if (i < n) take(b, load_some<T>(x + i, n - i, -std::numeric_limits<T>::infinity()));
  return xsimd::any(nan) ? std::numeric_limits<T>::quiet_NaN() : largest<T>(xsimd::max(a, b));
}

/// exp_row() of a row that is one partial sum.
template <class T>
[[gnu::always_inline]] inline T exp_short_row(T const* x, T m, T* out, Index n) {
  Lanes<T> const shift(m);
  Lanes<T> sum(T(0));
  Index i = 0;
  for (; i + lanes<T> <= n; i += lanes<T>) {
    auto const value = exponential_of_softmax(Lanes<T>::load_unaligned(x + i) - shift);
    value.store_unaligned(out + i);
    sum += value;
  }
  if (i < n) {
    auto const value = exponential_of_softmax(load_some<T>(x + i, n - i, T(0)) - shift);
    store_some<T>(value, out + i, n - i);
    sum += keep_some<T>(value, n - i);
  }
  return lane_sum(sum);
}

/// out[i] = e^(x[i] − m); returns the sum. Inlined, so that a caller's loop over rows keeps the exponential's constants in registers.
template <class T>
[[gnu::always_inline]] inline T exp_row(T const* x, T m, T* out, Index n) {
  if (n <= row_of_partial_sum) return exp_short_row(x, m, out, n);
  return sum_in_parts<T>(n, [&](Index first, Index count) { return exp_short_row(x + first, m, out + first, count); });
}

/// out[i] = factor · e^(x[i] − m).
template <class T>
[[gnu::always_inline]] inline void scaled_exp_row(T const* x, T m, T factor, T* out, Index n) {
  Lanes<T> const shift(m), scale(factor);
  transform_row<T>(
      out, n, [&](auto const& v) { return exponential_of_softmax(v - shift) * scale; }, x);
}

/// The most batches of a row that are held in registers.
inline constexpr int few_batches = 4;

/// A row of n numbers in N batches, the last possibly partial.
template <class T, int N>
class FewBatches {
 public:
  static constexpr int count = N;

  explicit FewBatches(Index n) : rest_(n - (N - 1) * lanes<T>) {}

  /// Lanes beyond the row are set to `fill`.
  [[gnu::always_inline]] void load(T const* x, T fill, Lanes<T> (&v)[N]) const {
    for (int i = 0; i < N - 1; ++i) v[i] = Lanes<T>::load_unaligned(x + i * lanes<T>);
    v[N - 1] = rest_ == lanes<T> ? Lanes<T>::load_unaligned(x + (N - 1) * lanes<T>) : load_some<T>(x + (N - 1) * lanes<T>, rest_, fill);
  }
  [[gnu::always_inline]] void store(Lanes<T> const (&v)[N], T* x) const {
    for (int i = 0; i < N - 1; ++i) v[i].store_unaligned(x + i * lanes<T>);
    store_some<T>(v[N - 1], x + (N - 1) * lanes<T>, rest_);
  }

 private:
  Index rest_;
};

/// Calls f(FewBatches) for a row of n; false if the row has more batches.
template <class T, int N = 1, class F>
[[gnu::always_inline]] inline bool in_registers(Index n, F const& f) {
  if constexpr (N <= few_batches) {
    if (n > N * lanes<T>) return in_registers<T, N + 1>(n, f);
    f(FewBatches<T, N>(n));
    return true;
  } else {
    return false;
  }
}

/// log Σ eˣ as m + log(total).
template <class T>
struct SoftmaxSum {
  T m, total;
};

/// Softmax of one row; an empty row is left as it is, and one NaN makes the whole row NaN, through the sum. `out` may be x.
template <class T>
[[gnu::always_inline]] inline SoftmaxSum<T> softmax_row(T const* x, T* out, Index n) {
  SoftmaxSum<T> sum;
  bool const few = in_registers<T>(
      n, [&](auto batches) __attribute__((always_inline)) {
        constexpr int N = decltype(batches)::count;
        Lanes<T> v[N];
        batches.load(x, -std::numeric_limits<T>::infinity(), v);
        Lanes<T> maxima = v[0];
        for (int i = 1; i < N; ++i) maxima = xsimd::max(maxima, v[i]);
        sum.m = largest<T>(maxima);
        Lanes<T> const shift(sum.m);
        Lanes<T> total(T(0));
        for (int i = 0; i < N; ++i) total += v[i] = exponential_of_softmax(v[i] - shift);
        sum.total = lane_sum(total);
        Lanes<T> const factor(T(1) / sum.total);
        for (int i = 0; i < N; ++i) v[i] *= factor;
        batches.store(v, out);
      });
  if (few) return sum;
  T const m = max_row(x, n);
  T const total = exp_row(x, m, out, n);
  Lanes<T> const factor(T(1) / total);
  transform_row<T>(
      out, n, [&](auto v) { return v * factor; }, out);
  return {m, total};
}

/// Another part of a row's softmax: x becomes e^(x − m), m the largest number so far. Returns the factor on what had the last m.
template <class T>
T softmax_part(T* x, Index n, SoftmaxSum<T>& sum) {
  T factor = 1;
  if (T const m = max_row(x, n); !(m <= sum.m)) {
    factor = std::exp(sum.m - m);
    sum = {m, sum.total * factor};
  }
  constexpr T lowest = -std::numeric_limits<T>::infinity();
  sum.total += exp_row(x, sum.m == lowest ? T(0) : sum.m, x, n);
  return factor;
}

template <class T>
T dot_row(T const* a, T const* b, Index n) {
  return sum_row<T>(
      n, [](auto u, auto v) { return u * v; }, a, b);
}

/// The gradient of a part of a row's softmax: dx = y (dy − inner), where inner is Σ dy y of the whole row. dx may be dy.
template <class T>
[[gnu::always_inline]] inline void softmax_part_backward(T const* y, T const* dy, T inner, T* dx, Index n) {
  Lanes<T> const of_row(inner);
  transform_row<T>(
      dx, n, [&](auto p, auto g) { return p * (g - of_row); }, y, dy);
}

/// The gradient of softmax_row: dx = y (dy − Σ dy y). dx may be dy.
template <class T>
[[gnu::always_inline]] inline void softmax_row_backward(T const* y, T const* dy, T* dx, Index n) {
  bool const few = in_registers<T>(
      n, [&](auto batches) __attribute__((always_inline)) {
        constexpr int N = decltype(batches)::count;
        Lanes<T> p[N], g[N];
        batches.load(y, 0, p);
        batches.load(dy, 0, g);
        Lanes<T> sum(T(0));
        for (int i = 0; i < N; ++i) sum = xsimd::fma(p[i], g[i], sum);
        Lanes<T> const inner(lane_sum(sum));
        for (int i = 0; i < N; ++i) g[i] = p[i] * (g[i] - inner);
        batches.store(g, dx);
      });
  if (few) return;
  softmax_part_backward<T>(y, dy, dot_row(y, dy, n), dx, n);
}

/// out[k] = 0 with probability `rate`, else x[k]/(1 − rate), for n elements; out may be x. Element i = first + k uses word i mod 4 of the
/// stream's draw ⌊i/4⌋: drawing is the largest cost.
template <class T>
void dropout_row(double rate, Stream const& stream, std::uint64_t first, T const* x, T* out, Index n) {
  auto const threshold = static_cast<std::uint32_t>(std::min(std::ceil(std::ldexp(rate, 32)), 0x1p32 - 1));
  T const factor = static_cast<T>(1 / (1 - rate));
  alignas(64) std::array<std::uint32_t, 256> words;
  while (n > 0) {
    auto const before = static_cast<Index>(first % 4);
    Index const count = std::min(n, std::ssize(words) - before);
    stream.words(first / 4, {words.data(), static_cast<std::size_t>((before + count + 3) / 4 * 4)});
    std::uint32_t const* const word = words.data() + before;
    for (Index k = 0; k < count; ++k) out[k] = word[k] < threshold ? T(0) : x[k] * factor;
    first += static_cast<std::uint64_t>(count), x += count, out += count, n -= count;
  }
}

}  // namespace heed::kernels
