#include "nn/pass.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "autograd/error.hpp"

namespace heed {

namespace {

/// Writes x's elements into `room` from row `first` on.
template <class T>
void write_rows(Tensor const& x, Tensor& room, std::int64_t first) {
  auto const from = x.data<T>();
  std::ranges::copy(from, room.mutable_data<T>().begin() + first * room.size(1));
}

void write_rows(Tensor const& x, Tensor& room, std::int64_t first) {
  (x.dtype() == DType::float32 ? write_rows<float> : write_rows<double>)(x, room, first);
}

}  // namespace

Tensor GrowingRows::append(Tensor const& fresh) {
  bool const fits = fresh.rank() == 3 && fresh.size(0) == 1 && !fresh.requires_grad() &&
                    (!room_.defined() || (fresh.size(2) == room_.size(1) && fresh.dtype() == room_.dtype()));
  if (!fits)
    throw Error(fmt::format("cache: cannot keep rows of {}{}; it reads one sequence, of one width, outside the graph",
                            to_string(fresh.shape()), fresh.requires_grad() ? " with a gradient" : ""));
  std::int64_t const n = fresh.size(1), width = fresh.size(2);
  if (!room_.defined() || count_ + n > room_.size(0)) {
    Tensor larger({2 * (count_ + n), width}, fresh.dtype());
    if (count_ > 0) write_rows(room_.rows(0, count_), larger, 0);
    room_ = larger;
  }
  write_rows(fresh, room_, count_);
  count_ += n;
  return room_.rows(0, count_).viewed({1, count_, width});
}

}  // namespace heed
