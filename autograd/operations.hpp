#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "autograd/random.hpp"
#include "autograd/tensor.hpp"

/// The differentiable operations. All leave their inputs alone, broadcast as NumPy does where two shapes meet, want one dtype for all
/// real inputs, and throw Error naming the operation and the shapes. Negative axes count from the end.
namespace heed {

class RoundedWeights;

// ---------------------------------------------------------------- elementwise (ops/elementwise.cpp, ops/activation.cpp, ops/compare.cpp)

Tensor add(Tensor const& a, Tensor const& b);
Tensor subtract(Tensor const& a, Tensor const& b);
Tensor multiply(Tensor const& a, Tensor const& b);
Tensor divide(Tensor const& a, Tensor const& b);
Tensor scale(Tensor const& x, double factor);  ///< factor · x
Tensor shift(Tensor const& x, double amount);  ///< x + amount
Tensor negate(Tensor const& x);
Tensor reciprocal(Tensor const& x);
Tensor pow(Tensor const& x, double exponent);
Tensor pow(Tensor const& x, Tensor const& exponent);  ///< x > 0

inline Tensor operator+(Tensor const& a, Tensor const& b) { return add(a, b); }
inline Tensor operator-(Tensor const& a, Tensor const& b) { return subtract(a, b); }
inline Tensor operator*(Tensor const& a, Tensor const& b) { return multiply(a, b); }
inline Tensor operator/(Tensor const& a, Tensor const& b) { return divide(a, b); }
inline Tensor operator-(Tensor const& x) { return negate(x); }
inline Tensor operator+(Tensor const& x, double c) { return shift(x, c); }
inline Tensor operator+(double c, Tensor const& x) { return shift(x, c); }
inline Tensor operator-(Tensor const& x, double c) { return shift(x, -c); }
inline Tensor operator-(double c, Tensor const& x) { return shift(negate(x), c); }
inline Tensor operator*(Tensor const& x, double c) { return scale(x, c); }
inline Tensor operator*(double c, Tensor const& x) { return scale(x, c); }
inline Tensor operator/(Tensor const& x, double c) { return scale(x, 1 / c); }
inline Tensor operator/(double c, Tensor const& x) { return scale(reciprocal(x), c); }

Tensor exp(Tensor const& x);
Tensor expm1(Tensor const& x);
Tensor log(Tensor const& x);
Tensor log1p(Tensor const& x);
Tensor sqrt(Tensor const& x);
Tensor rsqrt(Tensor const& x);  ///< 1/√x
Tensor sin(Tensor const& x);
Tensor cos(Tensor const& x);
Tensor tanh(Tensor const& x);
Tensor sigmoid(Tensor const& x);   ///< 1/(1 + e⁻ˣ)
Tensor softplus(Tensor const& x);  ///< log(1 + eˣ), without overflow
Tensor erf(Tensor const& x);
Tensor relu(Tensor const& x);        ///< max(x, 0); derivative 0 at 0
Tensor gelu(Tensor const& x);        ///< x/2 · (1 + tanh(√(2/π)·(x + 0.044715 x³))) (Hendrycks & Gimpel 2016)
Tensor gelu_exact(Tensor const& x);  ///< x Φ(x)
Tensor silu(Tensor const& x);        ///< x · sigmoid(x)
Tensor abs(Tensor const& x);         ///< derivative 0 at 0
/// Derivative 1 inside and on the edges, 0 outside.
Tensor clamp(Tensor const& x, double low, double high);
/// At ties each gets half of the gradient.
Tensor maximum(Tensor const& a, Tensor const& b);
Tensor minimum(Tensor const& a, Tensor const& b);

// Comparisons give 1 and 0 in the dtype of their arguments and have no derivative.
Tensor greater(Tensor const& a, Tensor const& b);
Tensor greater_equal(Tensor const& a, Tensor const& b);
Tensor less(Tensor const& a, Tensor const& b);
Tensor less_equal(Tensor const& a, Tensor const& b);
Tensor equal(Tensor const& a, Tensor const& b);
Tensor not_equal(Tensor const& a, Tensor const& b);
inline Tensor operator>(Tensor const& a, Tensor const& b) { return greater(a, b); }
inline Tensor operator<(Tensor const& a, Tensor const& b) { return less(a, b); }
inline Tensor operator>=(Tensor const& a, Tensor const& b) { return greater_equal(a, b); }
inline Tensor operator<=(Tensor const& a, Tensor const& b) { return less_equal(a, b); }
inline Tensor operator>(Tensor const& a, double c) { return greater(a, Tensor::scalar(c, a.dtype())); }
inline Tensor operator<(Tensor const& a, double c) { return less(a, Tensor::scalar(c, a.dtype())); }
inline Tensor operator>=(Tensor const& a, double c) { return greater_equal(a, Tensor::scalar(c, a.dtype())); }
inline Tensor operator<=(Tensor const& a, double c) { return less_equal(a, Tensor::scalar(c, a.dtype())); }

/// a where `condition` is not 0, else b.
Tensor where(Tensor const& condition, Tensor const& a, Tensor const& b);
/// `value` where `mask` is not 0, else x.
Tensor masked_fill(Tensor const& x, Tensor const& mask, double value);
/// x, as a constant: no gradient flows through.
Tensor stop_gradient(Tensor const& x);

// ---------------------------------------------------------------- reductions (ops/reduce.cpp): over `axes` (none given: all); `keep`
// leaves extents of 1

using Axes = std::vector<std::int64_t>;

Tensor sum(Tensor const& x, Axes const& axes = {}, bool keep = false);
Tensor mean(Tensor const& x, Axes const& axes = {}, bool keep = false);
/// Σ(x − mean)² / (n − correction).
Tensor variance(Tensor const& x, Axes const& axes = {}, bool keep = false, std::int64_t correction = 0);
/// The gradient is shared evenly between ties. Throws Error over an axis of size 0.
Tensor max(Tensor const& x, Axes const& axes = {}, bool keep = false);
Tensor min(Tensor const& x, Axes const& axes = {}, bool keep = false);
/// log Σ eˣ, shifted by the maximum.
Tensor logsumexp(Tensor const& x, Axes const& axes = {}, bool keep = false);
/// Running sums along an axis; `reverse`: from the end.
Tensor cumsum(Tensor const& x, std::int64_t axis, bool reverse = false);
/// Sums what broadcasting from `shape` to x's shape repeated.
Tensor sum_to(Tensor const& x, Shape const& shape);
/// Positions of the largest elements along an axis (the lowest of equals), int64; no derivative.
Tensor argmax(Tensor const& x, std::int64_t axis);

// ---------------------------------------------------------------- softmax and norms (ops/softmax.cpp, ops/normalise.cpp)

Tensor softmax(Tensor const& x, std::int64_t axis = -1);
Tensor log_softmax(Tensor const& x, std::int64_t axis = -1);
/// Softmax along the last axis over the places where `visible` (broadcast to x) is not 0; a row that sees nothing is zeros, with zero
/// gradient.
Tensor masked_softmax(Tensor const& x, Tensor const& visible);
/// e^{x_j}/(e^{s_h} + Σ_j e^{x_j}) over the visible places of x [B, H, n, m], s = beside [H]: a softmax with one place more, which is left
/// out. `visible` as in masked_softmax; a row that sees nothing is zeros.
Tensor softmax_beside(Tensor const& x, Tensor const& visible, Tensor const& beside);
/// The Euclidean projection of each row's visible part onto the simplex (Martins & Astudillo 2016), and 1.5-entmax, argmax p·x + H of
/// Tsallis' entropy with α = 1.5 (Peters et al. 2019): rows sum to one and hold zeros. `visible` as in masked_softmax.
Tensor sparsemax(Tensor const& x, Tensor const& visible);
Tensor entmax15(Tensor const& x, Tensor const& visible);
/// (x − mean)/√(variance + eps) · weight + bias over the last axis (Ba et al. 2016). weight, bias: [last extent]; an undefined bias is
/// none.
Tensor layer_norm(Tensor const& x, Tensor const& weight, Tensor const& bias, double eps = 1e-5);
/// x/√(mean x² + eps) · weight over the last axis (Zhang & Sennrich 2019).
Tensor rms_norm(Tensor const& x, Tensor const& weight, double eps = 1e-5);

// ---------------------------------------------------------------- shape (ops/shape.cpp)

/// The same elements under another shape; one extent may be −1. Shares the array.
Tensor reshape(Tensor const& x, std::vector<std::int64_t> const& extents);
Tensor permute(Tensor const& x, std::vector<std::int64_t> const& axes);
Tensor transpose(Tensor const& x, std::int64_t axis1 = -2, std::int64_t axis2 = -1);
/// Repeats extents of 1, and adds axes in front, up to `shape`.
Tensor expand(Tensor const& x, Shape const& shape);
Tensor squeeze(Tensor const& x, std::int64_t axis);
Tensor unsqueeze(Tensor const& x, std::int64_t axis);  ///< a new axis of 1 at this position of the result
/// Elements start, start + step, … before `stop` along an axis; negative positions count from the end; step ≠ 0 may be negative.
Tensor slice(Tensor const& x, std::int64_t axis, std::int64_t start, std::int64_t stop, std::int64_t step = 1);
Tensor concatenate(std::vector<Tensor> const& parts, std::int64_t axis);
Tensor stack(std::vector<Tensor> const& parts, std::int64_t axis);
/// Consecutive pieces of the given sizes along an axis.
std::vector<Tensor> split(Tensor const& x, std::vector<std::int64_t> const& sizes, std::int64_t axis);
/// `value` before and after along an axis.
Tensor pad(Tensor const& x, std::int64_t axis, std::int64_t before, std::int64_t after, double value = 0);
/// The last two axes' lower triangle: elements with column ≤ row + diagonal; 0 elsewhere.
Tensor tril(Tensor const& x, std::int64_t diagonal = 0);

// ---------------------------------------------------------------- index (ops/index.cpp); indices are int64

/// y[… i …] = x[… index[… i …] …] along an axis; index has x's shape but for that axis (torch.gather).
Tensor gather(Tensor const& x, std::int64_t axis, Tensor const& index);
/// Zeros of `shape`, to which source[… i …] is added at index[… i …] along an axis: the transpose of gather.
Tensor scatter_add(Shape const& shape, std::int64_t axis, Tensor const& index, Tensor const& source);
/// Rows of weight [V, d] by tokens [...]: [..., d]. Throws Error naming the first token outside [0, V).
Tensor embedding(Tensor const& weight, Tensor const& tokens);
/// Zeros [rows, d], to whose row tokens[i] the row i of source [..., d] is added: the transpose of embedding.
Tensor embedding_transposed(Tensor const& source, Tensor const& tokens, std::int64_t rows);
/// [..., classes], 1 at the index.
Tensor one_hot(Tensor const& index, std::int64_t classes, DType dtype);

// ---------------------------------------------------------------- products (ops/matmul.cpp, ops/einsum.cpp, ops/convolve.cpp)

/// a [..., n, k] · b [..., k, m] with broadcast batch axes; a vector is a row on the left and a column on the right (NumPy's matmul).
/// transpose_a / transpose_b: the last two axes are swapped first, without a copy.
Tensor matmul(Tensor const& a, Tensor const& b, bool transpose_a = false, bool transpose_b = false);
/// x [..., in] · weightᵀ + bias + residual: weight [out, in], bias [out] or undefined, residual [..., out] or undefined. `rounded`:
/// where a single row is multiplied in bfloat16, the weight is taken from there (autograd/rounded_weights.hpp).
Tensor linear(Tensor const& x, Tensor const& weight, Tensor const& bias, Tensor const& residual = {}, RoundedWeights* rounded = nullptr);
/// Einstein's sum of one or two operands: "bhnd,bhmd->bhnm". One letter an axis, no repeats within an operand.
Tensor einsum(std::string const& formula, std::vector<Tensor> const& operands);
/// x [B, C, H, W], weight [O, C, h, w], bias [O] or undefined → [B, O, (H + 2p − h)/stride + 1, …]: cross-correlation.
Tensor conv2d(Tensor const& x, Tensor const& weight, Tensor const& bias, std::int64_t stride = 1, std::int64_t padding = 0);

// ---------------------------------------------------------------- attention (ops/attention.cpp)

/// Which keys a query may see. Query i stands at position offset + i and sees, if causal, the keys 0 … offset + i; of sequence b in any
/// case only the first lengths[b] (int64 [B]; undefined: all). The queries of sequence b from i = query_lengths[b] on are padding and see
/// nothing (int64 [B]; undefined: none is).
struct Visibility {
  bool causal = false;
  Tensor lengths;
  std::int64_t offset = 0;
  Tensor query_lengths = {};

  /// How many sequences have lengths of their own: B, or 1 where all are alike.
  std::int64_t sequences() const;
  /// How many keys query i of sequence b sees, of `keys` in all: they are the first so many.
  std::int64_t count(std::int64_t b, std::int64_t i, std::int64_t keys) const;
  /// 1 where a query sees a key, else 0: [B or 1, 1, queries, keys].
  Tensor mask(std::int64_t queries, std::int64_t keys, DType dtype) const;
  /// count() of every query: [B or 1, 1, queries, 1].
  Tensor counts(std::int64_t queries, std::int64_t keys, DType dtype) const;
};

/// Dropout of weights [B, H, n, m]: element (b, h, i, j) by draw ((b H + h) n + i) m + j of the stream, as dropout() does.
struct WeightDropout {
  double rate;
  Stream stream;
};

/// Luong's weighing by distance exp(−(j − centre)²/(2 deviation²)): centres [B, H, n, 1] → [B, H, n, keys].
Tensor gaussian_around(Tensor const& centres, double deviation, std::int64_t keys);
/// A bias by distance laid out over the pairs: relative [H, n + m − 1] → [1, H, n, m], the element (i, j) from j − i + n − 1.
Tensor relative_bias(Tensor const& relative, std::int64_t queries, std::int64_t keys);
/// 1 inside each query's window (see AttentionForm), else 0. centres [B or 1, H or 1, n, 1] → [B, H or 1, n, keys].
Tensor window_mask(Tensor const& centres, double reach, Visibility const& visibility, std::int64_t keys);
/// How fast rotary positions turn: pair i of a head of width d by (p/stretch)/base^{2i/d} at position p.
struct Turn {
  double base = 10000, stretch = 1;
};
/// Rotary positions (Su et al. 2021): in x [B, T, H·d], token t at position p = offset + t, every pair (2i, 2i+1) of a head turned by its
/// angle. `back`: turned the other way.
Tensor rotary(Tensor const& x, std::int64_t heads, std::int64_t offset = 0, Turn const& turn = {}, bool back = false);
/// x [B, T, H·d] → [B, H, T, d], and back.
Tensor split_heads(Tensor const& x, std::int64_t heads);
Tensor merge_heads(Tensor const& x);

// ---------------------------------------------------------------- losses and noise (ops/loss.cpp, ops/sample.cpp)

/// Mean over the targets that are not `ignore` of −Σ_c t_c log softmax(logits)_c, with t the target smoothed by ε: (1 − ε) at the target
/// plus ε/V everywhere. logits [..., V], targets int64 [...]. `count`: divide by this instead of the number of targets (several
/// micro-batches of one step). Zero if nothing counts.
Tensor cross_entropy(Tensor const& logits, Tensor const& targets, double label_smoothing = 0, std::int64_t ignore = -1,
                     std::optional<double> count = std::nullopt);
/// cross_entropy(linear(x, weight, bias), targets, …): x [..., in], weight [V, in], bias [V] or undefined, targets int64 [...]. Logits of
/// more than logits_bytes() go block by block: computed and, where the graph is being recorded, turned into their gradients in place and
/// multiplied into those of the inputs, which the loss holds from then on. Rows that are ignored cost nothing. Second derivatives go
/// through whole logits.
Tensor linear_cross_entropy(Tensor const& x, Tensor const& weight, Tensor const& bias, Tensor const& targets, double label_smoothing = 0,
                            std::int64_t ignore = -1, std::optional<double> count = std::nullopt);
/// What logits may take while they are held whole; 16 MiB unless set.
std::int64_t logits_bytes();
void set_logits_bytes(std::int64_t bytes);
/// How many of `rows` rows of logits are held at once: all, or blocks of even size within logits_bytes(), but of 256 rows at least.
std::int64_t logits_at_once(std::int64_t rows, std::int64_t classes, DType dtype);
/// x/(1 − rate) or 0 with probability `rate`; element i by draw i of the stream (Srivastava et al. 2014).
Tensor dropout(Tensor const& x, double rate, Stream const& stream);

}  // namespace heed
