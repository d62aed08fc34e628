// Triangular systems.

#include "autograd/kernels/triangular.hpp"

#include <fmt/format.h>

#include "autograd/elementwise.hpp"
#include "autograd/kernels/dispatch.hpp"
#include "autograd/ops/product.hpp"
#include "autograd/ops/shape.hpp"
#include "autograd/parallel.hpp"

namespace heed {

Tensor solve_unit_lower(Tensor const& a, Tensor const& right, bool transposed) {
  require_same_real("solve_unit_lower", a, right);
  bool fits = a.rank() >= 2 && right.rank() == a.rank() && a.size(-2) == a.size(-1) && right.size(-2) == a.size(-1);
  for (std::size_t axis = 0; fits && axis + 2 < a.rank(); ++axis)
    fits = a.shape()[static_cast<Index>(axis)] == right.shape()[static_cast<Index>(axis)];
  if (!fits)
    throw Error(
        fmt::format("solve_unit_lower: A {} and R {}: wants [..., n, n] and [..., n, m]", to_string(a.shape()), to_string(right.shape())));
  Index const n = right.size(-2), m = right.size(-1), systems = n * m > 0 ? right.elements() / (n * m) : 0;
  Tensor y = right.clone();
  kernels::with_arrays(a, y, [&]<class T>(T const* matrix, T* w) {
    auto const solve = [&](Index i) { kernels::solve_unit_lower<T>(n, m, matrix + i * n * n, n, w + i * n * m, m, transposed); };
    parallel_each(systems, 0.03 * static_cast<double>(n * n * m), solve, Cut::whole);
  });
  return record("solve_unit_lower", {a, right}, std::move(y), Keep{.inputs = {true}, .output = true},
                [transposed](BackwardContext const& s) {
                  Tensor const dright = solve_unit_lower(s.x(0), s.dy, !transposed);
                  if (!s.wants(0)) return std::vector<Tensor>{{}, dright};
                  Tensor const outer = transposed ? matmul(s.y, dright, false, true) : matmul(dright, s.y, false, true);
                  return std::vector<Tensor>{-tril(outer, -1), dright};
                });
}

}  // namespace heed
