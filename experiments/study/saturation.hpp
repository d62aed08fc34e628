#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "autograd/index.hpp"
#include "autograd/random.hpp"

namespace heed {

/// Quantities of the softmax p of n logits s q·k_j with Jacobian J = diag(p) − p pᵀ by the logits.
enum class Quantity : std::uint8_t {
  trace,                   ///< tr J = 1 − Σ p²
  frobenius_squared,       ///< ‖J‖²_F
  frobenius_median,        ///< the median of ‖J‖_F
  entropy,                 ///< −Σ p log p, nat
  max_weight,              ///< max p
  query_gradient_squared,  ///< ‖∂p/∂q‖²_F = s² ‖J K‖²_F, K [n, d] the keys
  key_gradient_squared,    ///< ‖∂p/∂k‖²_F = s² |q|² ‖J‖²_F
  logit_variance,          ///< E z²
  logit_kurtosis,          ///< E z⁴ / (E z²)²
  frobenius_1,             ///< the percentiles of ‖J‖_F
  frobenius_10,
  frobenius_90,
  frobenius_99,
  frobenius_top,     ///< the share of Σ ‖J‖²_F in the largest hundredth of the samples
  query_gradient_1,  ///< the same of ‖∂p/∂q‖_F
  query_gradient_10,
  query_gradient_median,
  query_gradient_90,
  query_gradient_99,
  query_gradient_top,
  query_weights_gradient  ///< of a layer: ‖∂L/∂W_q‖_F, L the loss of an untrained Transformer
};
inline constexpr std::size_t quantities = 21;
std::string name(Quantity quantity);
/// Quantities that describe the distribution of ‖J‖_F or ‖∂p/∂q‖_F: sampling does not continue until these are precise, because a far
/// quantile may be 0.
inline bool describes_spread(Quantity quantity) { return quantity >= Quantity::frobenius_1 && quantity <= Quantity::query_gradient_top; }
inline bool is_gradient(Quantity quantity) {
  return quantity == Quantity::query_gradient_squared || quantity == Quantity::key_gradient_squared;
}

/// What describes the spread of ‖J‖_F and of ‖∂p/∂q‖_F: the 1, 10, 90 and 99 % quantiles, and the share of the top.
inline constexpr std::array spread_of_jacobian{Quantity::frobenius_1, Quantity::frobenius_10, Quantity::frobenius_90,
                                               Quantity::frobenius_99, Quantity::frobenius_top};
inline constexpr std::array spread_of_query_gradient{Quantity::query_gradient_1, Quantity::query_gradient_10, Quantity::query_gradient_90,
                                                     Quantity::query_gradient_99, Quantity::query_gradient_top};

/// For each query: J's trace and squared norm, entropy and largest weight. The largest weight is separated from the others, to avoid
/// cancellation where it is nearly 1.
struct Saturation {
  std::vector<double> trace, frobenius_squared, entropy, max_weight;
  // On request:
  std::vector<float> top, largest, second;  ///< the index of the largest weight, and the two largest weights
  std::vector<float> others;                ///< [n, queries]: all weights divided by the second largest, 0 in place of the largest
};

/// logits [n, queries], n ≥ 2, one column per query, rows `stride` apart; they are multiplied by `scale`, which may be negative. One vector
/// lane per query. The number of queries is a multiple of 16. Results have float precision relative to their own size.
void measure_saturation(float const* logits, Index n, Index queries, Index stride, double scale, bool others, Saturation& out);

/// Distribution of queries and keys: components with mean 0 and variance 1; `logits`: no queries and keys, products iid N(0, d).
enum class Law : std::uint8_t { logits, gaussian, uniform, rademacher };

/// Fills `out`, whose size is a multiple of 32, with independent numbers of the law; `gaussian` and `logits`: standard normal (Box–Muller).
void draw(Law law, Stream const& stream, std::span<float> out);

/// A block: this many queries (a multiple of 32) with this many keys, in groups of n. Rows of different blocks are independent, rows of one
/// block are not.
struct BlockShape {
  Index width, n, queries, keys;
  /// If set, attention is causal: query i is at this position plus i, key j at j, and a query uses the groups that it sees entirely.
  std::optional<Index> first_position{};

  /// About `most` queries and twice as many keys; fewer for a small width, where a block's rows are strongly correlated.
  static BlockShape of(Index width, Index n, Index most);
  /// The first query that sees the whole group of keys first … first + n − 1, a multiple of 16; at most `queries`.
  Index first_query(Index first_key) const;
  Index rows() const;
  Index logits() const { return queries * keys; }
};

/// Queries, keys and their products, or (Law::logits) the products alone.
struct ProductBlock {
  std::vector<float> queries, keys;  ///< [queries, d], [keys, d]
  std::vector<float> products;       ///< [keys, queries]
};
ProductBlock draw_block(Law law, BlockShape const& shape, Stream const& stream);
/// Computes the products.
void multiply(ProductBlock& block, BlockShape const& shape);

/// Options of measuring a block.
struct Wanted {
  std::vector<double> scales;
  bool gradients = true;
  /// Repeat every row with all keys negated, equally likely under a symmetric distribution: twice the rows from one product.
  bool mirrored = false;
};

/// Results of a block for one scale: means over its rows (E z² and E z⁴ instead of variance and kurtosis; no quantiles), and the ‖J‖_F of
/// each row, with gradients also its ‖∂p/∂q‖_F.
struct BlockMeans {
  std::vector<double> means = std::vector<double>(quantities, 0.0);
  std::vector<float> frobenius, query_gradient;
};

/// Measures one block, for each scale. Gradients are by queries and keys, if there are any.
std::vector<BlockMeans> measure_block(ProductBlock const& block, BlockShape const& shape, Wanted const& wanted);

}  // namespace heed
