// Selecting elements by index, and the transpose. The order of sums depends on the source alone: threads split columns, never additions.

#include "autograd/ops/index.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/graph.hpp"
#include "autograd/kernels/dispatch.hpp"
#include "autograd/kernels/rows.hpp"
#include "autograd/ops/shape.hpp"
#include "autograd/parallel.hpp"
#include "autograd/shape.hpp"

namespace heed {

namespace {

constexpr double element_cost = 0.5;

/// Throws Error unless every index is an int64 in [0, extent): names the first that is not.
void require_within(char const* operation, Tensor const& index, Index extent) {
  if (index.dtype() != DType::int64)
    throw Error(fmt::format("{}: indices are int64, not {} {}", operation, to_string(index.dtype()), to_string(index.shape())));
  auto const all = index.data<std::int64_t>();
  auto const bad = std::ranges::find_if(all, [extent](Index i) { return i < 0 || i >= extent; });
  if (bad == all.end()) return;
  std::vector<Index> coordinates(index.rank());
  Index rest = bad - all.begin();
  for (std::size_t axis = coordinates.size(); axis-- > 0;) {
    coordinates[axis] = rest % index.size(static_cast<Index>(axis));
    rest /= index.size(static_cast<Index>(axis));
  }
  throw Error(fmt::format("{}: index {} at [{}] is outside [0, {})", operation, *bad, fmt::join(coordinates, ", "), extent));
}

/// Throws Error unless the two shapes are equal but for `axis`.
void require_same_beside(char const* operation, Index axis, Shape const& shape, Shape const& index) {
  Shape cut = index;
  if (cut.rank() == shape.rank()) cut.set(axis, shape[axis]);
  if (cut != shape)
    throw Error(fmt::format("{}: shapes differ beside axis {}: {} and index {}", operation, axis, to_string(shape), to_string(index)));
}

/// sum += x with compensated summation: the error of a long sum is that of two additions (Kahan 1965).
template <class T>
void add_compensated(T& sum, T& taken, T x) {
  if constexpr (std::is_floating_point_v<T>) {
    if (x == 0) return;  // changes no bit
    T const rest = x - taken, before = sum;
    sum += rest;
    taken = std::isfinite(sum) ? (sum - before) - rest : T(0);
  } else {
    sum += x;
  }
}

/// The positions of every token, in order: those of token t are order[starts[t] … starts[t + 1]).
struct TokenPositions {
  std::vector<Index> starts, order;

  TokenPositions(std::span<Index const> token, Index tokens) : starts(static_cast<std::size_t>(tokens) + 1), order(token.size()) {
    for (Index const t : token) ++starts[static_cast<std::size_t>(t) + 1];
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    std::vector<Index> next(starts.begin(), starts.end() - 1);
    for (std::size_t i = 0; i < token.size(); ++i) heed::at(order, heed::at(next, token[i])++) = static_cast<Index>(i);
  }
  std::span<Index const> of(Index token) const {
    auto const first = static_cast<std::size_t>(heed::at(starts, token));
    return std::span(order).subspan(first, static_cast<std::size_t>(starts[static_cast<std::size_t>(token) + 1]) - first);
  }
};

/// out[0 … n) = the sum of those rows of `values` [all, width] that `rows` lists. From 1024 rows on, each partial sum covers a fixed
/// stretch of 64 of all rows, so that a row of zeros changes no bit, whichever token it belongs to.
template <class T>
void sum_of_rows(T const* values, Index width, Index all, std::span<Index const> rows, T* out, Index n) {
  using Row = kernels::Columns<T>;
  constexpr Index at_once = kernels::columns_at_once, few = 1024, stretch = 64;
  for (Index begin = 0; begin < n; begin += at_once) {
    Index const columns = std::min(at_once, n - begin);
    auto const add_row = [&](Index row, T* into) {
      T const* const from = values + row * width + begin;
      for (Index c = 0; c < columns; ++c) into[c] += from[c];
    };
    if (all <= few) {
      for (Index const row : rows) add_row(row, out + begin);
      continue;
    }
    kernels::PairwiseSum<Row> sum;
    for (std::size_t i = 0; i < rows.size();) {
      Index const number = rows[i] / stretch;
      sum.add_made(static_cast<std::uint64_t>(number), [&](Row& partial) {
        partial = {};
        for (; i < rows.size() && rows[i] / stretch == number; ++i) add_row(rows[i], partial.values);
      });
    }
    std::copy_n(sum.total(Row{}).values, columns, out + begin);
  }
}

}  // namespace

Tensor gather(Tensor const& x, Index axis, Tensor const& index) {
  axis = axis_of("gather", x.shape(), axis);
  require_same_beside("gather", axis, x.shape(), index.shape());
  require_within("gather", index, x.size(axis));
  AxisSplit const from(x.shape(), axis);
  AxisSplit const to(index.shape(), axis);
  Tensor y(index.shape(), x.dtype());
  kernels::with_any(x.dtype(), [&](auto type) {
    auto const* const source = x.data<decltype(type)>().data();
    auto* const target = y.mutable_data<decltype(type)>().data();
    auto const* const at = index.data<std::int64_t>().data();
    auto const gather_row = [&](Index row) {
      auto const* const block = source + row / to.extent * from.extent * from.inner;
      for (Index i = 0; i < to.inner; ++i) target[row * to.inner + i] = block[at[row * to.inner + i] * from.inner + i];
    };
    parallel_each(to.outer * to.extent, element_cost * static_cast<double>(to.inner), gather_row, Cut::whole);
  });
  return record("gather", {x, index}, std::move(y), Keep{.inputs = {false, true}}, [axis](BackwardContext const& s) {
    return std::vector{scatter_add(s.x(0).shape(), axis, s.x(1), s.dy), Tensor()};
  });
}

Tensor scatter_add(Shape const& shape, Index axis, Tensor const& index, Tensor const& source) {
  axis = axis_of("scatter_add", shape, axis);
  require_same_beside("scatter_add", axis, shape, index.shape());
  if (source.shape() != index.shape())
    throw Error(fmt::format("scatter_add: the source is {}, the index {}", to_string(source.shape()), to_string(index.shape())));
  require_within("scatter_add", index, shape[axis]);
  AxisSplit const from(index.shape(), axis);
  AxisSplit const to(shape, axis);
  Tensor y = Tensor::zeros(shape, source.dtype());
  kernels::with_any(y.dtype(), [&]<class T>(T) {
    T const* const values = source.data<T>().data();
    T* const target = y.mutable_data<T>().data();
    std::vector<T> taken(from.extent > kernels::rows_of_partial_sum ? static_cast<std::size_t>(y.elements()) : 0);
    auto const* const at = index.data<std::int64_t>().data();
    parallel_for(to.outer * to.inner, element_cost * static_cast<double>(from.extent), [&](Index begin, Index end) {
      while (begin < end) {  // columns [first, last) of one outer block
        Index const outer = begin / to.inner;
        Index const first = begin % to.inner;
        Index const last = std::min(to.inner, first + end - begin);
        for (Index row = outer * from.extent; row < (outer + 1) * from.extent; ++row) {
          for (Index i = first; i < last; ++i) {
            Index const element = row * from.inner + i, into = (outer * to.extent + at[element]) * to.inner + i;
            if (taken.empty()) {
              target[into] += values[element];
            } else {
              add_compensated(target[into], heed::at(taken, into), values[element]);
            }
          }
        }
        begin += last - first;
      }
    });
  });
  return record("scatter_add", {index, source}, std::move(y), Keep{.inputs = {true}}, [axis](BackwardContext const& s) {
    return std::vector{Tensor(), gather(s.dy, axis, s.x(0))};
  });
}

Tensor embedding(Tensor const& weight, Tensor const& tokens) {
  if (weight.rank() != 2) throw Error(fmt::format("embedding: the weight is a matrix, not {}", to_string(weight.shape())));
  Index const rows = weight.size(0);
  Index const width = weight.size(1);
  require_within("embedding", tokens, rows);
  Shape shape = tokens.shape();
  shape.append(width);
  Tensor y(shape, weight.dtype());
  kernels::with_any(weight.dtype(), [&](auto type) {
    auto const* const table = weight.data<decltype(type)>().data();
    auto* const target = y.mutable_data<decltype(type)>().data();
    auto const* const token = tokens.data<std::int64_t>().data();
    auto const copy_row = [&](Index i) { std::copy_n(table + token[i] * width, width, target + i * width); };
    parallel_each(tokens.elements(), 0.2 * static_cast<double>(width), copy_row, Cut::whole);
  });
  return record("embedding", {weight, tokens}, std::move(y), Keep{.inputs = {false, true}}, [rows](BackwardContext const& s) {
    return std::vector{embedding_transposed(s.dy, s.x(1), rows), Tensor()};
  });
}

Tensor embedding_transposed(Tensor const& source, Tensor const& tokens, Index rows) {
  Shape expected = tokens.shape();
  if (source.rank() > 0) expected.append(source.size(-1));
  if (source.rank() == 0 || source.shape() != expected)
    throw Error(
        fmt::format("embedding_transposed: {} is not one row for each token of {}", to_string(source.shape()), to_string(tokens.shape())));
  require_within("embedding_transposed", tokens, rows);
  Index const width = source.size(-1);
  Tensor y = Tensor::zeros({rows, width}, source.dtype());
  kernels::with_any(y.dtype(), [&]<class T>(T) {
    T const* const values = source.data<T>().data();
    T* const table = y.mutable_data<T>().data();
    TokenPositions const positions(tokens.data<std::int64_t>(), rows);
    parallel_for(
        width, 0.2 * static_cast<double>(tokens.elements()),
        [&](Index begin, Index end) {
          for (Index t = 0; t < rows; ++t) {
            auto const here = positions.of(t);
            if (!here.empty()) sum_of_rows(values + begin, width, tokens.elements(), here, table + t * width + begin, end - begin);
          }
        },
        16);
  });
  return record("embedding_transposed", {source, tokens}, std::move(y), Keep{.inputs = {false, true}}, [](BackwardContext const& s) {
    return std::vector{embedding(s.dy, s.x(1)), Tensor()};
  });
}

Tensor take(Tensor const& x, std::span<Index const> rows) {
  if (x.rank() == 0) throw Error("take: a scalar has no rows");
  std::vector<Index> shape(x.shape().begin(), x.shape().end());
  Index const width = Shape(std::span(shape).subspan(1)).elements();
  shape[0] = std::ssize(rows);
  Tensor const numbers = Tensor::of(std::vector(rows.begin(), rows.end()), {std::ssize(rows)});
  require_within("take", numbers, x.size(0));
  return reshape(embedding(reshape(x, {x.size(0), width}), numbers), shape);
}

Tensor one_hot(Tensor const& index, Index classes, DType dtype) {
  if (classes < 0) throw Error(fmt::format("one_hot: {} classes", classes));
  require_within("one_hot", index, classes);
  Shape shape = index.shape();
  shape.append(classes);
  Tensor y = Tensor::zeros(shape, dtype);
  kernels::with_any(dtype, [&](auto type) {
    auto* row = y.mutable_data<decltype(type)>().data();
    for (Index const i : index.data<std::int64_t>()) {
      row[i] = 1;
      row += classes;
    }
  });
  return y;
}

}  // namespace heed
