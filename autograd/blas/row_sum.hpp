#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "autograd/blas/products.hpp"
#include "autograd/kernels/rows.hpp"

namespace heed::kernels {

/// The sum of a matrix's rows, computed by threads while they use the rows for something else. Sums over stretches of `stretch` rows are
/// added in order at the end, so that bits depend neither on the threads nor on timing.
template <class T>
class RowSum {
 public:
  /// total [width]; null: no sum is wanted. A stretch is a multiple of `align` rows.
  RowSum(Index rows, Index width, T* total, Index align)
      : width_(width), total_(total), stretch_(std::max(align, (rows + max_stretches * align - 1) / (max_stretches * align) * align)) {
    if (total == nullptr) return;
    parts_.resize(static_cast<std::size_t>((rows + stretch_ - 1) / stretch_ * width));
  }
  RowSum(RowSum const&) = delete;
  RowSum& operator=(RowSum const&) = delete;
  ~RowSum() {
    if (total_ == nullptr) return;
    std::fill_n(total_, width_, T(0));
    for (auto part = parts_.begin(); part != parts_.end(); part += width_)
      std::transform(total_, total_ + width_, part, total_, std::plus<T>());
  }

  /// Rows per stretch; pieces of work must begin at multiples of it.
  Index stretch() const { return stretch_; }

  /// Adds columns [column, column + count) of rows [begin, end), which begin at x. Two threads must not work on one stretch.
  void add(Index begin, Index end, Index column, Index count, T const* x, Index leading) {
    while (begin < end) {
      Index const rows = std::min(end, (begin / stretch_ + 1) * stretch_) - begin;
      T* const part = parts_.data() + begin / stretch_ * width_ + column;
      each_batch<T>(count, [&](Index j, auto const& batch) {
        Lanes<T> sum = batch.load(part + j);
        for (Index i = 0; i < rows; ++i) sum += batch.load(x + i * leading + j);
        batch.store(sum, part + j);
      });
      begin += rows;
      x += rows * leading;
    }
  }
  /// Adds whole rows [begin, end) of x; does nothing if no sum is wanted.
  void add_rows(Index begin, Index end, Matrix<T> const& x) {
    if (total_ != nullptr) add(begin, end, 0, width_, x.data + begin * x.leading, x.leading);
  }

 private:
  static constexpr Index max_stretches = 32;  // number of stretches
  Index width_;
  T* total_;
  Index stretch_;
  std::vector<T> parts_;
};

}  // namespace heed::kernels
