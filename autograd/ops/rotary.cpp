// Rotary positions.

#include <cmath>

#include "autograd/kernels/dispatch.hpp"
#include "autograd/operations/attention.hpp"
#include "autograd/ops/formula.hpp"
#include "autograd/parallel.hpp"

namespace heed {

Tensor rotary(Tensor const& x, std::int64_t heads, std::int64_t offset, Turn const& turn, bool back) {
  require_real("rotary", x);
  if (x.rank() != 3 || heads < 1 || x.size(2) % (2 * heads) != 0) {
    throw Error(fmt::format("rotary: {} is not [B, T, H·d] with an even d for {} heads", to_string(x.shape()), heads));
  }
  std::int64_t const length = x.size(1);
  std::int64_t const width = x.size(2) / heads;
  Tensor y(x.shape(), x.dtype());
  kernels::with_real(x.dtype(), [&](auto type) {
    using T = decltype(type);
    T const* const in = x.data<T>().data();
    T* const out = y.mutable_data<T>().data();
    // Positions outside, so that a turn's sine and cosine are computed once for all sequences and heads.
    parallel_for(length, static_cast<double>(x.size(0) * x.size(2)) + 30 * static_cast<double>(width),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t t = begin; t < end; ++t) {
                     for (std::int64_t i = 0; i < width; i += 2) {
                       double const place = static_cast<double>(offset + t) / turn.stretch;
                       double const angle = place / std::pow(turn.base, static_cast<double>(i) / static_cast<double>(width));
                       T const c = static_cast<T>(std::cos(angle));
                       T const s = static_cast<T>(back ? -std::sin(angle) : std::sin(angle));
                       for (std::int64_t b = 0; b < x.size(0); ++b) {
                         for (std::int64_t h = 0; h < heads; ++h) {
                           std::int64_t const at = (b * length + t) * x.size(2) + h * width + i;
                           T const even = in[at];
                           T const odd = in[at + 1];
                           out[at] = even * c - odd * s;
                           out[at + 1] = even * s + odd * c;
                         }
                       }
                     }
                   }
                 });
  });
  // A rotation's transpose turns back.
  return record("rotary", {x}, std::move(y), keep_nothing,
                [=](Step const& step) { return std::vector{rotary(step.dy, heads, offset, turn, !back)}; });
}
static Registered const rotary_check{
    {"rotary",
     "every pair of a head turned by (p/stretch)/base^{2i/d}",
     {{{{{2, 3, 8}}}, [](std::vector<Tensor> const& x) { return rotary(x[0], 2); }},
      {{{{1, 2, 6}}}, [](std::vector<Tensor> const& x) { return rotary(x[0], 1, 5, {.base = 100, .stretch = 2.5}, true); }}},
     {{[] {
         rotary(Tensor::zeros({2, 3, 6}, DType::float64), 2);
       },
       "rotary: [2, 3, 6] is not [B, T, H·d] with an even d for 2 heads"}}}};

}  // namespace heed
