#include "autograd/kernels/map.hpp"

namespace heed::kernels {

BroadcastReader::BroadcastReader(Shape const& from, Shape const& to) : contiguous_(from.elements() == to.elements()) {
  if (contiguous_) return;
  auto const rank = static_cast<std::int64_t>(to.rank());
  auto const missing = rank - static_cast<std::int64_t>(from.rank());
  std::array<std::int64_t, Shape::max_rank> stride{};
  std::int64_t step = 1;
  for (std::int64_t axis = rank - 1; axis >= missing; --axis) {
    std::int64_t const extent = from[axis - missing];
    stride[static_cast<std::size_t>(axis)] = extent == 1 ? 0 : step;
    step *= extent;
  }
  for (std::size_t axis = 0; axis < to.rank(); ++axis) {
    std::int64_t const extent = to[static_cast<std::int64_t>(axis)];
    if (extent == 1) continue;
    bool const merges = rank_ > 0 && strides_[rank_ - 1] == stride[axis] * extent;
    if (!merges) strides_[rank_++] = 0, extents_[rank_ - 1] = 1;
    extents_[rank_ - 1] *= extent;
    strides_[rank_ - 1] = stride[axis];
  }
}

template <class T>
void BroadcastReader::gather(T const* source, std::int64_t begin, std::int64_t count, T* scratch) const {
  std::array<std::int64_t, Shape::max_rank> index{};
  std::int64_t offset = 0;
  std::int64_t rest = begin;
  for (std::size_t axis = rank_; axis-- > 0;) {
    index[axis] = rest % extents_[axis];
    rest /= extents_[axis];
    offset += index[axis] * strides_[axis];
  }
  std::size_t const last = rank_ - 1;
  for (std::int64_t done = 0; done < count;) {
    std::int64_t const run = std::min(extents_[last] - index[last], count - done);
    if (strides_[last] == 0) {
      std::fill_n(scratch + done, run, source[offset]);
    } else {
      std::copy_n(source + offset, run, scratch + done);
    }
    done += run;
    index[last] += run;
    offset += run * strides_[last];
    for (std::size_t axis = last; axis > 0 && index[axis] == extents_[axis]; --axis) {
      offset += strides_[axis - 1] - extents_[axis] * strides_[axis];
      index[axis] = 0;
      ++index[axis - 1];
    }
  }
}

template void BroadcastReader::gather(float const*, std::int64_t, std::int64_t, float*) const;
template void BroadcastReader::gather(double const*, std::int64_t, std::int64_t, double*) const;

}  // namespace heed::kernels
