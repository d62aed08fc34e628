// Convolutions. Of images as one product over patches (Chellapilla et al. 2006): unfold makes patches columns, fold is its transpose.

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

/// Images [batch, channels, height, width], their patches [batch, channels · rows · columns, down · across].
struct Patches {
  Index batch, channels, height, width;  ///< of the images
  Index rows, columns;                   ///< of a patch
  Index stride, padding;
  Index down = (height + 2 * padding - rows) / stride + 1;      ///< number of patches in a column of the image
  Index across = (width + 2 * padding - columns) / stride + 1;  ///< … and in a row

  Shape images() const { return {batch, channels, height, width}; }
  Shape patches() const { return {batch, channels * rows * columns, down * across}; }
};

/// Calls move(image, patch, count) for runs of elements that correspond: `stride` apart in one channel's image, neighbours in its patches.
template <class Move>
void for_each_run(Patches const& p, Move const& move) {
  for (Index i = 0; i < p.rows * p.columns; ++i) {
    Index const top = i / p.columns - p.padding;
    Index const left = i % p.columns - p.padding;
    // The patches whose element i is inside the image: 0 ≤ left + stride · x < width.
    Index const first = left < 0 ? (-left + p.stride - 1) / p.stride : 0;
    Index const last = left < p.width ? std::min(p.across, (p.width - left - 1) / p.stride + 1) : 0;
    for (Index y = 0; y < p.down && first < last; ++y) {
      Index const row = top + p.stride * y;
      if (row >= 0 && row < p.height) move(row * p.width + left + p.stride * first, (i * p.down + y) * p.across + first, last - first);
    }
  }
}

/// The patches of images (`unfolds`), or the images that patches add up to: each is the transpose of the other.
Tensor moved(Tensor const& x, Patches const& p, bool unfolds) {
  Tensor y = Tensor::zeros(unfolds ? p.patches() : p.images(), x.dtype());
  Index const pixels = p.height * p.width, elements = p.rows * p.columns * p.down * p.across;  // of a channel
  kernels::with_arrays(x, y, [&](auto const* source, auto* target) {
    auto const move_channel = [&](Index c) {
      for_each_run(p, [&](Index in_image, Index in_patches, Index count) {
        Index const pixel = c * pixels + in_image, element = c * elements + in_patches;
        if (unfolds)
          for (Index i = 0; i < count; ++i) target[element + i] = source[pixel + i * p.stride];
        else
          for (Index i = 0; i < count; ++i) target[pixel + i * p.stride] += source[element + i];
      });
    };
    parallel_each(p.batch * p.channels, 0.5 * static_cast<double>(elements), move_channel, Cut::whole);
  });
  return record(unfolds ? "unfold" : "fold", {x}, std::move(y), keep_nothing,
                [p, unfolds](BackwardContext const& s) { return std::vector{moved(s.dy, p, !unfolds)}; });
}

// ---------------------------------------------------------------- causal, depthwise, over time: a few taps per channel

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
  auto const filter_row = [&](Index row) {
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
  };
  parallel_each(x.size(0) * length, arithmetic_cost * to_double(taps * channels), filter_row, Cut::whole);
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

Tensor conv2d(Tensor const& x, Tensor const& weight, Tensor const& bias, Index stride, Index padding) {
  if (x.rank() != 4 || weight.rank() != 4 || x.size(1) != weight.size(1))
    throw Error(
        fmt::format("conv2d: x {} and weight {} are not [B, C, H, W] and [O, C, h, w]", to_string(x.shape()), to_string(weight.shape())));
  if (x.dtype() == DType::int64 || x.dtype() != weight.dtype())
    throw Error(fmt::format("conv2d: wants one real dtype, not {} and {}", to_string(x.dtype()), to_string(weight.dtype())));
  Index const outputs = weight.size(0);
  if (bias.defined() && bias.shape() != Shape{outputs})
    throw Error(fmt::format("conv2d: the bias {} is not [{}], the outputs of weight {}", to_string(bias.shape()), outputs,
                            to_string(weight.shape())));
  if (stride < 1 || padding < 0) throw Error(fmt::format("conv2d: a stride of {} and a padding of {}: at least 1 and 0", stride, padding));
  bool const fits = std::min(weight.size(2), weight.size(3)) > 0 && x.size(2) + 2 * padding >= weight.size(2) &&
                    x.size(3) + 2 * padding >= weight.size(3);
  if (!fits)
    throw Error(fmt::format("conv2d: weight {} does not fit into x {} with a padding of {}", to_string(weight.shape()),
                            to_string(x.shape()), padding));
  Patches const p{x.size(0), x.size(1), x.size(2), x.size(3), weight.size(2), weight.size(3), stride, padding};
  Tensor const y = matmul(reshape(weight, {outputs, p.patches()[1]}), moved(x, p, true));  // [B, O, down · across]
  Tensor const pixels = reshape(y, {p.batch, outputs, p.down, p.across});
  return bias.defined() ? pixels + reshape(bias, {outputs, 1, 1}) : pixels;
}

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
        return kernels::with_real(s.dy.dtype(), [&]<class T>(T) {
          return std::vector{s.wants(0) ? filtered<T>(s.dy, s.x(1), true) : Tensor(),
                             s.wants(1) ? weight_gradient<T>(s.x(0), s.dy, s.x(1).size(1)) : Tensor()};
        });
      },
      [](std::vector<Tensor> const& in) { return composed(in[0], in[1]); });
}

}  // namespace heed
