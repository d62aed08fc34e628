#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "autograd/random.hpp"

namespace heed {

/// What is measured of the softmax p of n logits s q·k_j with Jacobian J = diag(p) − p pᵀ by the logits.
enum class Quantity : std::uint8_t {
  trace,                   ///< tr J = 1 − Σ p²
  frobenius_squared,       ///< ‖J‖²_F
  frobenius_median,        ///< the median of ‖J‖_F
  entropy,                 ///< −Σ p log p, nat
  max_weight,              ///< max p
  query_gradient_squared,  ///< ‖∂p/∂q‖²_F = s² ‖J K‖²_F, K [n, d] the keys
  key_gradient_squared,    ///< ‖∂p/∂k‖²_F = s² |q|² ‖J‖²_F
  logit_variance,          ///< E z²
  logit_kurtosis           ///< E z⁴ / (E z²)²
};
inline constexpr std::size_t quantities = 9;
std::string name(Quantity quantity);

/// For each of a number of queries: J's trace and squared norm, entropy and largest weight. The largest weight is kept apart from the
/// others, so that nothing cancels where it is nearly 1.
struct Saturation {
  std::vector<double> trace, frobenius_squared, entropy, max_weight;
  std::vector<float> weights;  ///< [n, queries]
};

/// logits [n, queries], a column a query, `stride` apart; they are multiplied by `scale`. A vector lane a query: columns do not meet.
/// The number of queries is a multiple of 16.
void measure_saturation(float const* logits, std::int64_t n, std::int64_t queries, std::int64_t stride, double scale, Saturation& out);

/// How queries and keys are drawn: components with mean 0 and variance 1; `logits`: no queries and keys at all, products iid N(0, d).
enum class Law : std::uint8_t { logits, gaussian, uniform, rademacher };

/// Fills `out`, whose size is a multiple of 32, with independent numbers of the law; `gaussian` and `logits`: standard normal (Box–Muller).
void draw(Law law, Stream const& stream, std::span<float> out);

/// A block: so many queries meet so many keys, in groups of n. Rows of different blocks are independent, rows of the same are not.
struct BlockShape {
  std::int64_t width, n, queries, keys;
  /// A block whose numbers do not take longer to draw than to use.
  static BlockShape of(std::int64_t width, std::int64_t n);
  std::int64_t rows() const { return queries * (keys / n); }
  std::int64_t logits() const { return queries * keys; }
};

/// What is wanted of a block.
struct Wanted {
  std::vector<double> scales;
  bool gradients = true;
};

/// What came of a block under one scale: means over its rows (E z² and E z⁴ in place of variance and kurtosis; nothing for the median), and
/// the ‖J‖_F of each row.
struct BlockMeans {
  std::vector<double> means = std::vector<double>(quantities, 0.0);
  std::vector<float> frobenius;
};

/// Draws and measures one block, by scale.
std::vector<BlockMeans> measure_block(Law law, BlockShape const& shape, Wanted const& wanted, Stream const& stream);

}  // namespace heed
