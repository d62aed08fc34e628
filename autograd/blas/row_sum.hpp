#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "autograd/blas/gemm.hpp"
#include "autograd/kernels/rows.hpp"

namespace heed::kernels {

/// The sum of a matrix's rows, computed by threads while they use the rows for something else. Sums over stretches of `stretch` rows are
/// added in order at the end, so that bits depend neither on the threads nor on timing.
template <class T>
class RowSum {
 public:
  /// total [width]; null: no sum is wanted. A stretch is a multiple of `align` rows.
  RowSum(std::int64_t rows, std::int64_t width, T* total, std::int64_t align)
      : width_(width), total_(total), stretch_(std::max(align, (rows + most * align - 1) / (most * align) * align)) {
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

  bool asked() const { return total_ != nullptr; }
  /// Rows per stretch; pieces of work must begin at multiples of it.
  std::int64_t stretch() const { return stretch_; }

  /// Adds columns [column, column + count) of rows [begin, end), which begin at x. Two threads must not work on one stretch.
  void add(std::int64_t begin, std::int64_t end, std::int64_t column, std::int64_t count, T const* x, std::int64_t leading) {
    while (begin < end) {
      std::int64_t const rows = std::min(end, (begin / stretch_ + 1) * stretch_) - begin;
      T* const part = parts_.data() + begin / stretch_ * width_ + column;
      each_batch<T>(count, [&](std::int64_t j, auto const& batch) {
        Lanes<T> sum = batch.load(part + j);
        for (std::int64_t i = 0; i < rows; ++i) sum += batch.load(x + i * leading + j);
        batch.store(sum, part + j);
      });
      begin += rows;
      x += rows * leading;
    }
  }
  /// Adds whole rows [begin, end) of x; does nothing if no sum is wanted.
  void add_rows(std::int64_t begin, std::int64_t end, Matrix<T> const& x) {
    if (asked()) add(begin, end, 0, width_, x.data + begin * x.leading, x.leading);
  }

 private:
  static constexpr std::int64_t most = 32;  // number of stretches
  std::int64_t width_;
  T* total_;
  std::int64_t stretch_;
  std::vector<T> parts_;
};

}  // namespace heed::kernels
