// x_p + PE[p], PE[p, 2i] = sin(p/10000^{2i/d}), PE[p, 2i+1] = cos(p/10000^{2i/d})

#include <cmath>
#include <mutex>

#include "autograd/ops/elementwise.hpp"
#include "nn/position.hpp"

namespace heed {

Tensor sinusoids(Index first, Index length, Index width, DType dtype) {
  std::vector<double> values;
  for (Index p = first; p < first + length; ++p) {
    for (Index i = 0; i < width; ++i) {
      double const angle = static_cast<double>(p) / std::pow(10000.0, static_cast<double>(i / 2 * 2) / static_cast<double>(width));
      values.push_back(i % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  }
  return Tensor::of(values, {length, width}, dtype);
}

namespace {

struct Sinusoidal : Position {
  Tensor embed(Tensor const& x, Index offset) const override {
    std::lock_guard const lock(making);
    Index const end = offset + x.size(1);
    if (!table.defined() || table.size(0) < end) table = sinusoids(0, end, x.size(2), x.dtype());
    return x + table.rows(offset, x.size(1));
  }

  mutable std::mutex making;
  mutable Tensor table;  // as far as it has been needed
};

Declared<PositionKind> const sinusoidal_position{{"sinusoidal", "x_p + [sin(p/10000^{2i/d}), cos(p/10000^{2i/d})]", "Vaswani et al. 2017",
                                                  "defined", makes<Sinusoidal>, PositionActsOn::embeddings}};

}  // namespace

}  // namespace heed
