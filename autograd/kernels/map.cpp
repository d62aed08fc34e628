#include "autograd/kernels/map.hpp"

#include <algorithm>

#include "autograd/kernels/strided.hpp"
#include "autograd/parallel.hpp"
#include "autograd/shape.hpp"

namespace heed::kernels {

namespace {

/// Where the elements of a broadcast operand stand, in the output's order.
class BroadcastReader {
 public:
  BroadcastReader() = default;
  BroadcastReader(Shape const& from, Shape const& to) : contiguous_(from.elements() == to.elements()) {
    if (contiguous_) return;
    auto const stride = broadcast_layout(from, to).strides;
    for (std::size_t axis = 0; axis < to.rank(); ++axis) {
      Index const extent = to[static_cast<Index>(axis)];
      if (extent == 1) continue;
      bool const merges = rank_ > 0 && strides_[rank_ - 1] == stride[axis] * extent;
      if (!merges) strides_[rank_++] = 0, extents_[rank_ - 1] = 1;
      extents_[rank_ - 1] *= extent;
      strides_[rank_ - 1] = stride[axis];
    }
  }
  bool contiguous() const { return contiguous_; }
  /// Whether it is contiguous in stretches that are worth a call of a formula's loop each.
  bool in_stretches() const { return contiguous_ || (strides_[rank_ - 1] == 1 && extents_[rank_ - 1] >= 256); }
  /// The offset of element i, and how many from it on are neighbours.
  struct Stretch {
    Index offset, count;
  };
  Stretch stretch_at(Index i) const {
    Index const last = extents_[rank_ - 1], within = i % last;
    Index offset = within;
    Index rest = i / last;
    for (std::size_t axis = rank_ - 1; axis-- > 0;) {
      offset += rest % extents_[axis] * strides_[axis];
      rest /= extents_[axis];
    }
    return {offset, last - within};
  }
  /// Elements [begin, begin + count) of the output's order, gathered into `scratch`.
  template <class T>
  void gather(T const* source, Index begin, Index count, T* scratch) const {
    std::array<Index, Shape::max_rank> index{};
    Index offset = 0;
    Index rest = begin;
    for (std::size_t axis = rank_; axis-- > 0;) {
      index[axis] = rest % extents_[axis];
      rest /= extents_[axis];
      offset += index[axis] * strides_[axis];
    }
    std::size_t const last = rank_ - 1;
    for (Index done = 0; done < count;) {
      Index const run = std::min(extents_[last] - index[last], count - done);
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

 private:
  // The output's axes, neighbours that advance together merged; stride 0 where the operand is repeated.
  std::array<Index, Shape::max_rank> extents_;
  std::array<Index, Shape::max_rank> strides_;
  std::size_t rank_ = 0;
  bool contiguous_ = true;
};

/// Elements that are worked on at once: an operand that must be gathered first stays in the first-level cache.
constexpr Index map_block = 2048;

template <class T>
void map_broadcast(Tensor& y, void const* formula, FormulaLoop<T> loop, double cost, std::span<Tensor const* const> x) {
  std::size_t const operands = x.size();
  std::array<T const*, max_operands> sources{};
  std::array<BroadcastReader, max_operands> readers;
  bool plain = true, stretches = true;
  for (std::size_t i = 0; i < operands; ++i) {
    sources[i] = x[i]->data<T>().data();
    readers[i] = BroadcastReader(x[i]->shape(), y.shape());
    plain = plain && readers[i].contiguous();
    stretches = stretches && readers[i].in_stretches();
  }
  T* const out = y.mutable_data<T>().data();
  auto const body = [&](Index begin, Index end) {
    auto at = sources;
    if (plain) {
      for (std::size_t i = 0; i < operands; ++i) at[i] += begin;
      return loop(formula, out + begin, at.data(), end - begin);
    }
    if (stretches) {  // such as a row that is added to each of many: nothing is gathered
      for (Index first = begin, count = 0; first < end; first += count) {
        count = end - first;
        for (std::size_t i = 0; i < operands; ++i) {
          auto const stretch = readers[i].contiguous() ? BroadcastReader::Stretch{first, count} : readers[i].stretch_at(first);
          at[i] = sources[i] + stretch.offset;
          count = std::min(count, stretch.count);
        }
        loop(formula, out + first, at.data(), count);
      }
      return;
    }
    alignas(64) std::array<std::array<T, map_block>, max_operands> scratch;
    for (Index first = begin; first < end; first += map_block) {
      Index const count = std::min(map_block, end - first);
      for (std::size_t i = 0; i < operands; ++i) {
        at[i] = readers[i].contiguous() ? sources[i] + first : scratch[i].data();
        if (!readers[i].contiguous()) readers[i].gather(sources[i], first, count, scratch[i].data());
      }
      loop(formula, out + first, at.data(), count);
    }
  };
  parallel_for(y.elements(), cost, body, map_block, Cut::fine);
}

}  // namespace

void map_into(Tensor& y, FormulaLoops const& formula, double cost, std::span<Tensor const* const> x) {
  if (y.dtype() == DType::float32) {
    map_broadcast(y, formula.formula, formula.float32, cost, x);
  } else {
    map_broadcast(y, formula.formula, formula.float64, cost, x);
  }
}

}  // namespace heed::kernels
