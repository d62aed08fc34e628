// Random operations. Draws are a pure function of the stream and an element's index.

#include "autograd/elementwise.hpp"
#include "autograd/kernels/dispatch.hpp"
#include "autograd/kernels/rows.hpp"
#include "autograd/parallel.hpp"

namespace heed {

Tensor dropout(Tensor const& x, double rate, Stream const& stream) {
  require_real("dropout", x);
  if (!(rate >= 0 && rate < 1)) throw Error(fmt::format("dropout: the rate {} is not in [0, 1)", rate));
  if (rate == 0) return x;
  Tensor y(x.shape(), x.dtype());
  kernels::with_arrays(x, y, [&](auto const* from, auto* out) {
    parallel_for(x.elements(), 3, [&](Index begin, Index end) {
      kernels::dropout_row(rate, stream, static_cast<std::uint64_t>(begin), from + begin, out + begin, end - begin);
    });
  });
  // Linear and its own transpose: the mask is drawn again, not kept.
  return record("dropout", {x}, std::move(y), keep_nothing,
                [rate, stream](BackwardContext const& s) { return std::vector{dropout(s.dy, rate, stream)}; });
}

}  // namespace heed
