#pragma once

#include <memory>

#include "autograd/attention/pairs.hpp"
#include "autograd/elementwise.hpp"
#include "autograd/kernels/rows.hpp"

namespace heed {

/// An align of the attention kernels, from a struct with the static functions weights(row, again), gradients(row) and composed(…) and the
/// constant wants_scores, as RowAlign describes them, for rows of any type.
template <class Rows>
std::shared_ptr<RowAlign const> row_align() {
  struct Typed : RowAlign {
    void weights(kernels::AlignRow<float> const& row, bool again) const override { Rows::weights(row, again); }
    void weights(kernels::AlignRow<double> const& row, bool again) const override { Rows::weights(row, again); }
    void gradients(kernels::AlignRow<float> const& row) const override { Rows::gradients(row); }
    void gradients(kernels::AlignRow<double> const& row) const override { Rows::gradients(row); }
    bool wants_scores() const override { return Rows::wants_scores; }
    Tensor composed(Tensor const& scores, Tensor const& visible, Tensor const& seen, Tensor const& parameter) const override {
      return Rows::composed(scores, visible, seen, parameter);
    }
  };
  return std::make_shared<Typed>();
}

}  // namespace heed
