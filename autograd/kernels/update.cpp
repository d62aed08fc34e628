#include "autograd/kernels/update.hpp"

#include <cmath>
#include <tuple>

#include "autograd/kernels/dispatch.hpp"
#include "autograd/kernels/rows.hpp"

// Products in sums are written as fma, not left to the compiler to contract: whole batches and the rest of a stretch round alike.
namespace heed::kernels {

namespace {

/// Prefetch distance in elements: the processor's own prefetching stops at page boundaries.
constexpr Index distance = 512;

/// Calls f(x…, v…) batch by batch, x the elements of `read` and v those of `written`, which f changes.
template <class T, class F, class... W>
void update_row(F const& f, Elements at, T const* read, W*... written) {
  each_batch<T>(at.end - at.begin, [&](Index i, auto const& batch) {
    i += at.begin;
    __builtin_prefetch(read + i + distance);
    (__builtin_prefetch(written + i + distance, 1), ...);
    std::tuple values{batch.load(written + i)...};
    std::apply(
        [&](auto&... v) {
          f(batch.load(read + i), v...);
          (batch.store(v, written + i), ...);
        },
        values);
  });
}

template <class T>
T* elements(Tensor& x) {
  return x.mutable_data<T>().data();
}

}  // namespace

void sgd_update(Tensor& parameter, Tensor const& gradient, Tensor& velocity, SgdUpdate const& update, Elements at) {
  with_real(parameter.dtype(), [&]<class T>(T) {
    using L = Lanes<T>;
    L const rate(static_cast<T>(-update.rate)), factor(static_cast<T>(update.gradient_factor)), l2(static_cast<T>(update.l2)),
        momentum(static_cast<T>(update.momentum));
    T const* const g = gradient.data<T>().data();
    if (!velocity.defined()) {
      return update_row([&](L const& dy, L& p) { p = xsimd::fma(rate, xsimd::fma(l2, p, dy * factor), p); }, at, g, elements<T>(parameter));
    }
    update_row(
        [&](L const& dy, L& p, L& v) {
          L const total = xsimd::fma(l2, p, dy * factor);
          v = xsimd::fma(momentum, v, total);
          p = xsimd::fma(rate, update.nesterov ? xsimd::fma(momentum, v, total) : v, p);
        },
        at, g, elements<T>(parameter), elements<T>(velocity));
  });
}

AdamUpdate adam_step(Index t, double lr, double beta1, double beta2, double eps) {
  auto const updates = static_cast<double>(t);
  return {.rate = lr / (1 - std::pow(beta1, updates)),
          .gradient_factor = 1,
          .l2 = 0,
          .shrink = 1,
          .beta1 = beta1,
          .beta2 = beta2,
          .root_factor = 1 / std::sqrt(1 - std::pow(beta2, updates)),
          .eps = eps};
}

void adam_update(Tensor& parameter, Tensor const& gradient, Tensor& first, Tensor& second, AdamUpdate const& update, Elements at) {
  with_real(parameter.dtype(), [&]<class T>(T) {
    using L = Lanes<T>;
    auto const constant = [](double c) { return L(static_cast<T>(c)); };
    L const rate = constant(update.rate), factor = constant(update.gradient_factor), l2 = constant(update.l2),
            shrink = constant(update.shrink);
    L const beta1 = constant(update.beta1), beta2 = constant(update.beta2), rest1 = constant(1 - update.beta1),
            rest2 = constant(1 - update.beta2);
    L const root_factor = constant(update.root_factor), eps = constant(update.eps);
    update_row(
        [&](L const& dy, L& p, L& m, L& v) {
          L const g = xsimd::fma(l2, p, dy * factor);
          m = xsimd::fma(beta1, m, rest1 * g);
          v = xsimd::fma(beta2, v, rest2 * g * g);
          p = xsimd::fma(shrink, p, -(rate * m / xsimd::fma(xsimd::sqrt(v), root_factor, eps)));
        },
        at, gradient.data<T>().data(), elements<T>(parameter), elements<T>(first), elements<T>(second));
  });
}

void average_update(Tensor& average, Tensor const& x, double weight, Elements at) {
  with_real(average.dtype(), [&]<class T>(T) {
    using L = Lanes<T>;
    L const old(static_cast<T>(1 - weight)), fresh(static_cast<T>(weight));
    update_row([&](L const& value, L& mean) { mean = xsimd::fma(old, mean, fresh * value); }, at, x.data<T>().data(), elements<T>(average));
  });
}

double sum_of_squares(Tensor const& x, Elements at) {
  return with_real(x.dtype(), [&]<class T>(T) {
    T const* const values = x.data<T>().data();
    using L = Lanes<double>;
    constexpr Index together = 4, step = together * lanes<double>;
    L totals[together] = {L(0.0), L(0.0), L(0.0), L(0.0)};
    Index i = at.begin;
    for (; i + step <= at.end; i += step) {
      for (Index k = 0; k < together; ++k) {
        T const* const from = values + i + k * lanes<double>;
        __builtin_prefetch(from + distance);
        auto const v = L::load_unaligned(from);
        totals[k] = xsimd::fma(v, v, totals[k]);
      }
    }
    double total = lane_sum((totals[0] + totals[1]) + (totals[2] + totals[3]));
    for (; i < at.end; ++i) {
      L const v(double{values[i]});
      total = xsimd::fma(v, v, L(total)).get(0);
    }
    return total;
  });
}

}  // namespace heed::kernels
