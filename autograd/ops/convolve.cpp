// Convolution as one matrix product over patches (Chellapilla et al. 2006): unfold lays the patch under every output pixel out as a
// column, fold is its transpose.

#include <algorithm>

#include <fmt/format.h>

#include "autograd/graph.hpp"
#include "autograd/kernels/dispatch.hpp"
#include "autograd/ops/elementwise.hpp"
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

/// body(image, patches) for every channel of every image, in parallel.
template <class Body>
void for_each_channel(Patches const& p, Body const& body) {
  Index const patch_elements = p.rows * p.columns * p.down * p.across;
  auto const channel = [&](Index c) { body(c * p.height * p.width, c * patch_elements); };
  parallel_each(p.batch * p.channels, 0.5 * static_cast<double>(patch_elements), channel, Cut::whole);
}

Tensor fold(Tensor const& columns, Patches const& p);

Tensor unfold(Tensor const& x, Patches const& p) {
  Tensor y = Tensor::zeros(p.patches(), x.dtype());
  kernels::with_arrays(x, y, [&](auto const* source, auto* target) {
    for_each_channel(p, [&](Index image, Index patches) {
      for_each_run(p, [&](Index from, Index to, Index count) {
        for (Index i = 0; i < count; ++i) target[patches + to + i] = source[image + from + i * p.stride];
      });
    });
  });
  return record("unfold", {x}, std::move(y), keep_nothing, [p](BackwardContext const& s) { return std::vector{fold(s.dy, p)}; });
}

Tensor fold(Tensor const& columns, Patches const& p) {
  Tensor y = Tensor::zeros(p.images(), columns.dtype());
  kernels::with_arrays(columns, y, [&](auto const* source, auto* target) {
    for_each_channel(p, [&](Index image, Index patches) {
      for_each_run(p, [&](Index to, Index from, Index count) {
        for (Index i = 0; i < count; ++i) target[image + to + i * p.stride] += source[patches + from + i];
      });
    });
  });
  return record("fold", {columns}, std::move(y), keep_nothing, [p](BackwardContext const& s) { return std::vector{unfold(s.dy, p)}; });
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
  Tensor const y = matmul(reshape(weight, {outputs, p.patches()[1]}), unfold(x, p));  // [B, O, down · across]
  Tensor const pixels = reshape(y, {p.batch, outputs, p.down, p.across});
  return bias.defined() ? pixels + reshape(bias, {outputs, 1, 1}) : pixels;
}

}  // namespace heed
