// Recurrent cells over time: a fused scan, and its reference.

#include "autograd/ops/recurrence.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "autograd/blas/products.hpp"
#include "autograd/elementwise.hpp"
#include "autograd/kernels/dispatch.hpp"
#include "autograd/kernels/rows.hpp"
#include "autograd/kernels/strided.hpp"
#include "autograd/node.hpp"
#include "autograd/ops/operations.hpp"
#include "autograd/parallel.hpp"

namespace heed {

namespace {

using kernels::Lanes;

// Formulas of the cells, each written once over values V: Tensors, which build a graph, or batches in a loop. `a`: the input's part
// W x + b_W; `b`: the state's part U h + b_U, one value per gate; `s`: the states before the step. `keep`: what the derivative needs
// besides. The derivative takes the gradients `d` of the next states to those of a, b and s (without the part through b, a product).

struct TanhCell {
  static constexpr int gates = 1, states = 1, kept = 1;
  static constexpr bool one_sum = true;  ///< only a + b matters: a and b have equal gradients

  template <class V>
  [[gnu::always_inline]] static void forward(V const* a, V const* b, V const*, V* next, V* keep) {
    next[0] = keep[0] = tanh(a[0] + b[0]);
  }
  template <class V>
  [[gnu::always_inline]] static void backward(V const* d, V const*, V const* keep, V* da, V*, V* ds) {
    da[0] = d[0] * (1 - keep[0] * keep[0]);
    ds[0] = like(0, d[0]);
  }
};

struct Gru {
  static constexpr int gates = 3, states = 1, kept = 4;
  static constexpr bool one_sum = false;

  template <class V>
  [[gnu::always_inline]] static void forward(V const* a, V const* b, V const* s, V* next, V* keep) {
    V const r = sigmoid(a[0] + b[0]), z = sigmoid(a[1] + b[1]), n = tanh(a[2] + r * b[2]);
    next[0] = (1 - z) * n + z * s[0];
    keep[0] = r, keep[1] = z, keep[2] = n, keep[3] = b[2];
  }
  template <class V>
  [[gnu::always_inline]] static void backward(V const* d, V const* s, V const* keep, V* da, V* db, V* ds) {
    V const r = keep[0], z = keep[1], n = keep[2];
    da[2] = d[0] * (1 - z) * (1 - n * n);
    db[2] = da[2] * r;
    da[0] = db[0] = da[2] * keep[3] * r * (1 - r);
    da[1] = db[1] = d[0] * (s[0] - n) * z * (1 - z);
    ds[0] = d[0] * z;
  }
};

struct Lstm {
  static constexpr int gates = 4, states = 2, kept = 5;
  static constexpr bool one_sum = true;

  template <class V>
  [[gnu::always_inline]] static void forward(V const* a, V const* b, V const* s, V* next, V* keep) {
    V const i = sigmoid(a[0] + b[0]), f = sigmoid(a[1] + b[1]), g = tanh(a[2] + b[2]), o = sigmoid(a[3] + b[3]);
    next[1] = f * s[1] + i * g;
    V const out = tanh(next[1]);
    next[0] = o * out;
    keep[0] = i, keep[1] = f, keep[2] = g, keep[3] = o, keep[4] = out;
  }
  template <class V>
  [[gnu::always_inline]] static void backward(V const* d, V const* s, V const* keep, V* da, V*, V* ds) {
    V const i = keep[0], f = keep[1], g = keep[2], o = keep[3], out = keep[4];
    V const dc = d[1] + d[0] * o * (1 - out * out);
    da[0] = dc * g * i * (1 - i);
    da[1] = dc * s[1] * f * (1 - f);
    da[2] = dc * i * (1 - g * g);
    da[3] = d[0] * out * o * (1 - o);
    ds[0] = like(0, d[0]);
    ds[1] = dc * f;
  }
};

template <class F>
decltype(auto) with_cell(CellForm cell, F const& f) {
  if (cell == CellForm::tanh) return f(TanhCell());
  if (cell == CellForm::gru) return f(Gru());
  return f(Lstm());
}

/// How many steps each row is at work; empty: all of them.
std::span<Index const> lengths_of(ScanOrder const& order) {
  return order.lengths.defined() ? order.lengths.data<std::int64_t>() : std::span<Index const>();
}
bool at_work(std::span<Index const> lengths, Index row, Index t) { return lengths.empty() || t < at(lengths, row); }

/// The steps in the order of computation.
std::vector<Index> steps_of(ScanOrder const& order, Index count) {
  std::vector<Index> steps;
  for (Index i = 0; i < count; ++i) steps.push_back(order.backward ? count - 1 - i : i);
  return steps;
}

/// The arrays of a scan, by step: [T, B, …] each.
struct ScanExtents {
  Index steps, rows, width;
};

/// What a scan's derivative needs: the states before each step, [states, T, B, w], and what the cell keeps, [T, B, kept · w], if recorded.
struct Saved {
  Tensor before, kept;
};

/// U as the right factor of a step's product, Uᵀ [w, gates · w]. Of many steps it is laid out once (in `room`), so that their products
/// read it where it is: its rows not a page apart, where they would evict one another from the caches.
template <class T>
kernels::Matrix<T> right_factor(Tensor const& weight, Index steps, Tensor& room) {
  constexpr Index few = 4, page = 1024, line = 64 / sizeof(T);
  Index const outputs = weight.size(0), width = weight.size(1), leading = outputs % page == 0 ? outputs + line : outputs;
  if (steps < few) return {weight.data<T>().data(), width, true};
  room = Tensor({width, leading}, weight.dtype());
  kernels::copy_strided({width, outputs}, weight, {0, {1, width}}, room, {0, {leading, 1}});
  return {room.data<T>().data(), leading};
}

constexpr double gate_cost = 1;  // nanoseconds an element and gate

template <class T, class Cell>
void forward(ScanOrder const& order, ScanExtents const& e, Tensor const& a, Tensor const& weight, Tensor const& bias, States const& start,
             Tensor& y, Saved& saved) {
  constexpr int gates = Cell::gates, states = Cell::states, kept = Cell::kept;
  Index const w = e.width, step = e.rows * w;
  T const* const of_input = a.data<T>().data();
  Tensor room;
  auto const u = right_factor<T>(weight, e.steps, room);
  T const* const shift = bias.defined() ? bias.data<T>().data() : nullptr;
  T *const out = y.mutable_data<T>().data(), *const keep = saved.kept.defined() ? saved.kept.mutable_data<T>().data() : nullptr;
  T* const before = saved.before.mutable_data<T>().data();
  Tensor product({e.rows, gates * w}, a.dtype());
  T* const of_state = product.mutable_data<T>().data();
  auto const lengths = lengths_of(order);
  auto const steps = steps_of(order, e.steps);
  auto const state_at = [&](int k, std::size_t i) {  // before the i-th step that is made; after the last: in the result
    return i == steps.size() ? out + (e.steps + k) * step : before + (k * e.steps + steps[i]) * step;
  };
  for (int k = 0; k < states; ++k) std::ranges::copy(at(start, k).data<T>(), state_at(k, 0));
  for (std::size_t i = 0; i < steps.size(); ++i) {
    Index const t = steps[i];
    kernels::parallel_gemm<T>(e.rows, gates * w, w, {state_at(0, i), w}, u, of_state, {.row = shift});
    parallel_for(e.rows, gate_cost * static_cast<double>(gates * w), [&](Index first, Index last) {
      for (Index row = first; row < last; ++row) {
        Index const at_row = t * e.rows + row;
        T* const h = out + at_row * w;
        if (!at_work(lengths, row, t)) {
          for (int k = 0; k < states; ++k) std::copy_n(state_at(k, i) + row * w, w, state_at(k, i + 1) + row * w);
          std::fill_n(h, w, T(0));
          continue;
        }
        T const *const x = of_input + at_row * gates * w, *const b = of_state + row * gates * w;
        kernels::each_batch<T>(w, [&](Index j, auto const& batch) {
          Lanes<T> from_x[gates], from_h[gates], s[states], next[states], keeps[kept];
          for (int g = 0; g < gates; ++g) from_x[g] = batch.load(x + g * w + j), from_h[g] = batch.load(b + g * w + j);
          for (int k = 0; k < states; ++k) s[k] = batch.load(state_at(k, i) + row * w + j);
          Cell::forward(from_x, from_h, s, next, keeps);
          for (int k = 0; k < states; ++k) batch.store(next[k], state_at(k, i + 1) + row * w + j);
          if (keep != nullptr)
            for (int k = 0; k < kept; ++k) batch.store(keeps[k], keep + (at_row * kept + k) * w + j);
          batch.store(next[0], h + j);
        });
      }
    });
  }
}

/// Gradients of a, and of b = U h + b_U for every step, which are the same array where the cell's formula has their sum; and of `start`.
template <class T, class Cell>
void backward(ScanOrder const& order, ScanExtents const& e, Tensor const& dy, Tensor const& weight, Saved const& saved, Tensor& da,
              Tensor& db, States& dstart) {
  constexpr int gates = Cell::gates, states = Cell::states, kept = Cell::kept;
  Index const w = e.width, step = e.rows * w;
  T const *const gradient = dy.data<T>().data(), *const u = weight.data<T>().data();
  T const *const keep = saved.kept.data<T>().data(), *const before = saved.before.data<T>().data();
  T *const to_a = da.mutable_data<T>().data(), *const to_b = db.mutable_data<T>().data();
  T* ds[states];
  for (int k = 0; k < states; ++k) {
    auto const array = at(dstart, k).template mutable_data<T>();
    std::copy_n(gradient + (e.steps + k) * step, step, array.begin());
    ds[k] = array.data();
  }
  auto const lengths = lengths_of(order);
  auto steps = steps_of(order, e.steps);
  std::ranges::reverse(steps);
  for (Index const t : steps) {
    parallel_for(e.rows, gate_cost * static_cast<double>(gates * w), [&](Index first, Index last) {
      for (Index row = first; row < last; ++row) {
        Index const at_row = t * e.rows + row;
        T *const of_x = to_a + at_row * gates * w, *const of_h = to_b + at_row * gates * w;
        if (!at_work(lengths, row, t)) {
          std::fill_n(of_x, gates * w, T(0));
          std::fill_n(of_h, gates * w, T(0));
          continue;
        }
        kernels::each_batch<T>(w, [&](Index j, auto const& batch) {
          Lanes<T> d[states], s[states], keeps[kept], dx[gates], dh[gates], back[states];
          for (int k = 0; k < states; ++k)
            d[k] = batch.load(ds[k] + row * w + j), s[k] = batch.load(before + (k * e.steps + t) * step + row * w + j);
          d[0] += batch.load(gradient + at_row * w + j);
          for (int k = 0; k < kept; ++k) keeps[k] = batch.load(keep + (at_row * kept + k) * w + j);
          Cell::backward(d, s, keeps, dx, dh, back);
          for (int g = 0; g < gates; ++g) batch.store(dx[g], of_x + g * w + j);
          if constexpr (!Cell::one_sum)
            for (int g = 0; g < gates; ++g) batch.store(dh[g], of_h + g * w + j);
          for (int k = 0; k < states; ++k) batch.store(back[k], ds[k] + row * w + j);
        });
      }
    });
    kernels::parallel_gemm<T>(e.rows, w, gates * w, {to_b + t * gates * step, gates * w}, {u, w}, ds[0], {.in_place = true});
  }
}

ScanExtents check(CellForm cell, ScanOrder const& order, Tensor const& a, Tensor const& weight, Tensor const& bias, States const& start) {
  Index const gates = gates_of(cell), width = weight.rank() == 2 ? weight.size(1) : 0;
  bool fits = a.rank() == 3 && weight.shape() == Shape{gates * width, width} && a.size(2) == gates * width &&
              (!bias.defined() || bias.shape() == Shape{gates * width}) && std::ssize(start) == states_of(cell);
  for (Tensor const& state : start) fits = fits && state.shape() == Shape{a.size(1), width};
  fits = fits && (!order.lengths.defined() || order.lengths.shape() == Shape{a.size(1)});
  if (!fits)
    throw Error(fmt::format("scan: a {}, weight {}, bias {}, {} states{}: wants [T, B, g·w], [g·w, w], [g·w] and {} of [B, w], g = {}",
                            to_string(a.shape()), to_string(weight.shape()), bias.defined() ? to_string(bias.shape()) : "none",
                            start.size(), start.empty() ? "" : " " + to_string(start[0].shape()), states_of(cell), gates));
  require_same_real("scan", a, weight);
  return {a.size(0), a.size(1), width};
}

/// By the operation's inputs: a, the weight, the states, and the bias.
template <class T, class Cell>
std::vector<Tensor> gradients(BackwardContext const& s, ScanOrder const& order, ScanExtents const& e, Saved const& saved) {
  Index const width = Cell::gates * e.width;
  Tensor da({e.steps, e.rows, width}, s.dy.dtype()), db = Cell::one_sum ? da : Tensor(da.shape(), s.dy.dtype());
  States dstart;
  for (int k = 0; k < Cell::states; ++k) dstart.emplace_back(Shape{e.rows, e.width}, s.dy.dtype());
  backward<T, Cell>(order, e, s.dy, s.x(1), saved, da, db, dstart);
  std::vector<Tensor> result{da, {}};
  Index const rows = e.steps * e.rows;
  if (s.wants(1)) {
    result[1] = Tensor(s.x(1).shape(), s.dy.dtype());
    kernels::parallel_gemm<T>(width, e.width, rows, {db.data<T>().data(), width, true}, {saved.before.data<T>().data(), e.width},
                              result[1].mutable_data<T>().data());
  }
  result.insert(result.end(), dstart.begin(), dstart.end());
  result.push_back(s.wants(result.size()) ? sum(db.viewed({rows, width}), {0}) : Tensor());
  return result;
}

thread_local bool reference_only = false;

}  // namespace

Index gates_of(CellForm cell) {
  return with_cell(cell, [](auto formula) -> Index { return decltype(formula)::gates; });
}
Index states_of(CellForm cell) {
  return with_cell(cell, [](auto formula) -> Index { return decltype(formula)::states; });
}

States cell_step(CellForm cell, Tensor const& a, Tensor const& b, States const& before) {
  return with_cell(cell, [&](auto formula) {
    using Cell = decltype(formula);
    std::vector<Index> const widths(Cell::gates, a.size(-1) / Cell::gates);
    auto const of_input = split(a, widths, -1), of_state = split(b, widths, -1);
    States next(Cell::states);
    Tensor keep[Cell::kept];
    Cell::forward(of_input.data(), of_state.data(), before.data(), next.data(), keep);
    return next;
  });
}

Tensor scan_by_steps(ScanOrder const& order, Tensor const& a, States const& start,
                     std::function<States(Tensor const& a, States const& before)> const& step) {
  States state = start;
  auto const lengths = lengths_of(order);
  Index const steps = a.size(0), rows = a.size(1);
  std::vector<Tensor> outputs(static_cast<std::size_t>(steps));
  for (Index const t : steps_of(order, steps)) {
    States next = step(reshape(slice(a, 0, t, t + 1), {rows, a.size(2)}), state);
    Tensor& output = at(outputs, t) = next[0];
    if (std::ranges::any_of(lengths, [t](Index length) { return t >= length; })) {
      std::vector<double> works;
      for (Index row = 0; row < rows; ++row) works.push_back(at_work(lengths, row, t) ? 1 : 0);
      Tensor const mask = Tensor::of(works, {rows, 1}, a.dtype());
      output = where(mask, output, Tensor::scalar(0, a.dtype()));
      for (std::size_t k = 0; k < next.size(); ++k) next[k] = where(mask, next[k], state[k]);
    }
    state = std::move(next);
  }
  outputs.insert(outputs.end(), state.begin(), state.end());
  return stack(outputs, 0);
}

Tensor scan_reference(CellForm cell, ScanOrder const& order, Tensor const& a, Tensor const& weight, Tensor const& bias,
                      States const& start) {
  check(cell, order, a, weight, bias, start);
  return scan_by_steps(order, a, start, [&](Tensor const& at_step, States const& before) {
    return cell_step(cell, at_step, linear(before[0], weight, bias), before);
  });
}

Tensor scan(CellForm cell, ScanOrder const& order, Tensor const& a, Tensor const& weight, Tensor const& bias, States const& start) {
  ScanExtents const e = check(cell, order, a, weight, bias, start);
  return with_cell(cell, [&](auto formula) {
    using Cell = decltype(formula);
    Tensor y({e.steps + Cell::states, e.rows, e.width}, a.dtype());
    std::vector<Tensor> inputs{a, weight};
    inputs.insert(inputs.end(), start.begin(), start.end());
    inputs.push_back(bias);
    bool const recorded = std::ranges::any_of(inputs, records<Tensor>);
    Saved saved{Tensor({Cell::states, e.steps, e.rows, e.width}, a.dtype()),
                recorded ? Tensor({e.steps, e.rows, Cell::kept * e.width}, a.dtype()) : Tensor()};
    kernels::with_real(a.dtype(), [&](auto type) { forward<decltype(type), Cell>(order, e, a, weight, bias, start, y, saved); });
    if (!recorded) return y;
    Tensor states = record_fused(
        "scan", std::move(inputs), std::move(y), Keep{.inputs = {false, true}},
        [order, e, saved](BackwardContext const& s) {
          return kernels::with_real(s.dy.dtype(), [&](auto type) { return gradients<decltype(type), Cell>(s, order, e, saved); });
        },
        [cell, order](std::vector<Tensor> const& in) {
          return scan_reference(cell, order, in[0], in[1], in.back(), States(in.begin() + 2, in.end() - 1));
        });
    if (states.node()) states.node()->depth = e.steps;
    return states;
  });
}

ReferenceCells::ReferenceCells() : Temporarily(reference_only, true) {}
bool ReferenceCells::alive() { return reference_only; }

}  // namespace heed
