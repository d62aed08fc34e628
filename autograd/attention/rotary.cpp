// Rotary positions.

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "autograd/attention/attention.hpp"
#include "autograd/elementwise.hpp"
#include "autograd/kernels/dispatch.hpp"
#include "autograd/kernels/simd/xsimd.hpp"
#include "autograd/parallel.hpp"

namespace heed {

namespace {

/// Cosines and sines for the pairs of a head of `width`, at consecutive positions.
template <class T>
class Angles {
 public:
  Angles(Index width, RotaryFrequencies const& frequencies)
      : Angles((static_cast<std::size_t>(width / 2) + Batch::size - 1) / Batch::size * Batch::size) {
    stretch_ = frequencies.stretch;
    for (std::size_t i = 0; i < slowness_.size(); ++i)
      slowness_[i] = std::pow(frequencies.base, 2 * static_cast<double>(i) / static_cast<double>(width));
  }
  void set_position(Index position, bool back) {
    Batch const scaled(static_cast<double>(position) / stretch_);
    for (std::size_t i = 0; i < slowness_.size(); i += Batch::size) {
      auto const [s, c] = xsimd::sincos(scaled / Batch::load_unaligned(&slowness_[i]));
      s.store_unaligned(&sines_[i]);
      c.store_unaligned(&cosines_[i]);
    }
    std::ranges::transform(cosines_, cosine.begin(), [](double c) { return static_cast<T>(c); });
    std::ranges::transform(sines_, sine.begin(), [&](double s) { return static_cast<T>(back ? -s : s); });
  }

  std::vector<T> cosine, sine;

 private:
  using Batch = xsimd::batch<double>;
  explicit Angles(std::size_t padded) : cosine(padded), sine(padded), slowness_(padded), cosines_(padded), sines_(padded) {}
  double stretch_ = 1;
  std::vector<double> slowness_, cosines_, sines_;
};

/// One head of one token: `pairs` pairs.
template <class T>
void turn_pairs(T const* __restrict in, T const* __restrict cosine, T const* __restrict sine, T* __restrict out, Index pairs) {
  for (Index i = 0; i < pairs; ++i) {
    T const even = in[2 * i], odd = in[2 * i + 1];
    out[2 * i] = even * cosine[i] - odd * sine[i];
    out[2 * i + 1] = even * sine[i] + odd * cosine[i];
  }
}

}  // namespace

Tensor rotary(Tensor const& x, Index heads, Index offset, RotaryFrequencies const& frequencies, bool back) {
  require_real("rotary", x);
  if (x.rank() != 3 || heads < 1 || x.size(2) % (2 * heads) != 0) {
    throw Error(fmt::format("rotary: {} is not [B, T, H·d] with an even d for {} heads", to_string(x.shape()), heads));
  }
  Index const length = x.size(1), width = x.size(2) / heads;
  Tensor y(x.shape(), x.dtype());
  kernels::with_arrays(x, y, [&]<class T>(T const* in, T* out) {
    // Positions in the outer loop, so that sines and cosines are computed once for all sequences and heads.
    double const nanoseconds = 0.4 * static_cast<double>(x.size(0) * x.size(2)) + 3 * static_cast<double>(width);
    parallel_for(length, nanoseconds, [&](Index begin, Index end) {
      Angles<T> angles(width, frequencies);
      for (Index t = begin; t < end; ++t) {
        angles.set_position(offset + t, back);
        for (Index b = 0; b < x.size(0); ++b) {
          for (Index h = 0; h < heads; ++h) {
            Index const at = (b * length + t) * x.size(2) + h * width;
            turn_pairs(in + at, angles.cosine.data(), angles.sine.data(), out + at, width / 2);
          }
        }
      }
    });
  });
  // The transpose of a rotation is its inverse.
  return record("rotary", {x}, std::move(y), keep_nothing,
                [=](BackwardContext const& step) { return std::vector{rotary(step.dy, heads, offset, frequencies, !back)}; });
}

}  // namespace heed
