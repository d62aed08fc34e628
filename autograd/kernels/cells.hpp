#pragma once

#include "autograd/elementwise.hpp"

/// Formulas of recurrent cells, each written once over values V: Tensors, which build a graph, or batches in a loop. `a`: the input's part
/// W x + b_W; `b`: the state's part U h + b_U, one value per gate; `s`: the states before the step. `kept`: what the derivative needs
/// besides these. The derivative takes the gradients `d` of the next states and gives those of a, b and s (without the part through b,
/// which is a matrix product).
namespace heed::kernels {

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

}  // namespace heed::kernels
