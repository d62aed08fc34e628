// A causal depthwise convolution over time: a few taps per channel.

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "autograd/elementwise.hpp"
#include "autograd/graph_memory.hpp"
#include "autograd/kernels/dispatch.hpp"
#include "autograd/kernels/rows.hpp"
#include "autograd/ops/product.hpp"
#include "autograd/ops/shape.hpp"
#include "autograd/parallel.hpp"

namespace heed {

namespace {

using kernels::Lanes;

constexpr Index columns_at_once = 64;

/// out_t = Σ_i weight[:, i] x_{t − w + 1 + i}, or, `ahead`, x_{t + w − 1 − i}; zeros beyond either end.
template <class T>
Tensor filtered(Tensor const& x, Tensor const& weight, bool ahead) {
  Index const length = x.size(1), channels = x.size(2), taps = weight.size(1);
  Tensor out(x.shape(), x.dtype());
  Tensor const by_tap = transpose(weight.detach());  // [w, C]
  T const *const in = x.data<T>().data(), *const w = by_tap.data<T>().data();
  T* const to = out.mutable_data<T>().data();
  parallel_for(x.size(0) * length, arithmetic_cost * to_double(taps * channels), [&](Index begin, Index end) {
    for (Index row = begin; row < end; ++row) {
      Index const t = row % length;
      Index const first = std::max<Index>(0, taps - 1 - (ahead ? length - 1 - t : t));  // earlier taps are beyond the end
      kernels::each_batch<T>(channels, [&](Index c, auto const& batch) {
        Lanes<T> sum(T(0));
        for (Index i = first; i < taps; ++i) {
          Index const from = ahead ? row + taps - 1 - i : row - taps + 1 + i;
          sum = xsimd::fma(batch.load(w + i * channels + c), batch.load(in + from * channels + c), sum);
        }
        batch.store(sum, to + row * channels + c);
      });
    }
  });
  return out;
}

/// dweight[:, i] = Σ_t dy_t x_{t − w + 1 + i}, summed per sequence, then over sequences.
template <class T>
Tensor weight_gradient(Tensor const& x, Tensor const& dy, Index taps) {
  Index const batch = x.size(0), length = x.size(1), channels = x.size(2);
  Tensor sums = Tensor::zeros({taps, channels}, x.dtype());
  T const *const in = x.data<T>().data(), *const d = dy.data<T>().data();
  T* const to = sums.mutable_data<T>().data();
  Index const blocks = (channels + columns_at_once - 1) / columns_at_once;
  parallel_for(blocks, arithmetic_cost * to_double(batch * length * taps * columns_at_once), [&](Index begin, Index end) {
    Index const first = begin * columns_at_once, last = std::min(channels, end * columns_at_once);
    kernels::each_batch<T>(last - first, [&](Index offset, auto const& lanes) {
      Index const c = first + offset;
      for (Index i = 0; i < taps; ++i) {
        Lanes<T> total(T(0));
        for (Index b = 0; b < batch; ++b) {
          Lanes<T> sum(T(0));
          for (Index t = taps - 1 - i; t < length; ++t) {
            Index const row = b * length + t;
            sum = xsimd::fma(lanes.load(d + row * channels + c), lanes.load(in + (row - taps + 1 + i) * channels + c), sum);
          }
          total += sum;
        }
        lanes.store(total, to + i * channels + c);
      }
    });
  });
  return transpose(sums);
}

Tensor composed(Tensor const& x, Tensor const& weight) {
  Index const length = x.size(1), taps = weight.size(1);
  Tensor const padded = pad(x, 1, taps - 1, 0);
  Tensor sum;
  for (Index i = 0; i < taps; ++i) {
    Tensor const term = slice(padded, 1, i, i + length) * reshape(slice(weight, 1, i, i + 1), {weight.size(0)});
    sum = sum.defined() ? sum + term : term;
  }
  return sum;
}

}  // namespace

Tensor convolve_causal(Tensor const& x, Tensor const& weight) {
  require_same_real("convolve_causal", x, weight);
  if (x.rank() != 3 || weight.rank() != 2 || weight.size(0) != x.size(2) || weight.size(1) < 1)
    throw Error(
        fmt::format("convolve_causal: x {}, weight {}: wants [B, T, C] and [C, w]", to_string(x.shape()), to_string(weight.shape())));
  Tensor y = kernels::with_real(x.dtype(), [&](auto type) { return filtered<decltype(type)>(x, weight, false); });
  if (!records(x, weight)) return y;
  return record_fused(
      "convolve_causal", {x, weight}, std::move(y), keep_inputs,
      [](BackwardContext const& s) {
        return kernels::with_real(s.dy.dtype(), [&](auto type) {
          using T = decltype(type);
          return std::vector{s.wants(0) ? filtered<T>(s.dy, s.x(1), true) : Tensor(),
                             s.wants(1) ? weight_gradient<T>(s.x(0), s.dy, s.x(1).size(1)) : Tensor()};
        });
      },
      [](std::vector<Tensor> const& in) { return composed(in[0], in[1]); });
}

}  // namespace heed
