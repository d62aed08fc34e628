#include "nn/pass.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "autograd/error.hpp"

namespace heed {

namespace {

/// Writes the rows of x [B, n, width] into `room` [B, capacity, width], from row `first` of each sequence on.
template <class T>
void write_rows(Tensor const& x, Tensor& room, std::int64_t first) {
  auto const from = x.data<T>();
  auto const to = room.mutable_data<T>();
  std::int64_t const each = x.size(1) * x.size(2);
  for (std::int64_t b = 0; b < x.size(0); ++b)
    std::ranges::copy(from.subspan(static_cast<std::size_t>(b * each), static_cast<std::size_t>(each)),
                      to.begin() + (b * room.size(1) + first) * room.size(2));
}

void write_rows(Tensor const& x, Tensor& room, std::int64_t first) {
  (x.dtype() == DType::float32 ? write_rows<float> : write_rows<double>)(x, room, first);
}

/// The sequences of x [B, n, width] with these numbers.
Tensor chosen(Tensor const& x, Tensor const& sequences) {
  Tensor const rows = embedding(x.viewed({x.size(0), x.size(1) * x.size(2)}), sequences);
  return rows.viewed({sequences.size(0), x.size(1), x.size(2)});
}

}  // namespace

Tensor GrowingRows::append(Tensor const& fresh) {
  bool const fits =
      fresh.rank() == 3 && !fresh.requires_grad() &&
      (!room_.defined() || (fresh.size(0) == room_.size(0) && fresh.size(2) == room_.size(2) && fresh.dtype() == room_.dtype()));
  if (!fits)
    throw Error(fmt::format("cache: cannot keep rows of {}{}; it reads as many sequences as before, of one width, outside the graph",
                            to_string(fresh.shape()), fresh.requires_grad() ? " with a gradient" : ""));
  std::int64_t const sequences = fresh.size(0), n = fresh.size(1), width = fresh.size(2);
  if (!room_.defined() || count_ + n > room_.size(1)) {
    Tensor larger({sequences, 2 * (count_ + n), width}, fresh.dtype());
    if (count_ > 0) write_rows(slice(room_, 1, 0, count_), larger, 0);
    room_ = larger;
  }
  write_rows(fresh, room_, count_);
  count_ += n;
  if (sequences > 1) return slice(room_, 1, 0, count_);
  return room_.viewed({room_.size(1), width}).rows(0, count_).viewed({1, count_, width});
}

void GrowingRows::keep(Tensor const& sequences) {
  if (room_.defined()) room_ = chosen(room_, sequences);
}

void KeyValueCache::keep(Tensor const& sequences) {
  for (Layer& layer : layers) {
    layer.key.keep(sequences);
    layer.value.keep(sequences);
    if (layer.memory) layer.memory = Projected{chosen(layer.memory->key, sequences), chosen(layer.memory->value, sequences)};
  }
}

std::uint64_t Pass::sequence(std::int64_t row) const {
  auto const place = static_cast<std::size_t>(row);
  if (sequences.empty()) return place;
  if (place >= sequences.size())
    throw Error(fmt::format("pass: there are numbers of {} sequences, but none of row {}", sequences.size(), row));
  return sequences[place];
}

}  // namespace heed
