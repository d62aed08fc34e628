#pragma once

#include <algorithm>
#include <vector>

#include "autograd/random.hpp"
#include "autograd/tensor.hpp"

/// Building blocks of attention (attention.cpp, visibility.cpp, hard_read.cpp, rotary.cpp). Rules of all: autograd/ops/operations.hpp.
namespace heed {

/// The keys that a query attends to, [first, last).
struct KeyRange {
  Index first, last;
};

/// Which keys a query may attend to. Positions are counted from the first key: query i is at position offset + i; if causal, it sees the
/// keys 0 … offset + i. In sequence b only the first lengths[b] keys are visible (int64 [B]; undefined: all). The queries of sequence b
/// from i = query_lengths[b] on are padding and see no key (int64 [B]; undefined: no padding).
struct Visibility {
  bool causal = false;
  Tensor lengths;
  Index offset = 0;
  Tensor query_lengths = {};
  Index sees = 0;       ///< sliding window n > 0: of these keys only those less than n positions away; the cost follows
  Index first_key = 0;  ///< how many tokens of the sequence stand before the first key; no query here sees them

  /// Number of distinct sequences: B, or 1 where all have the same lengths.
  Index sequences() const;
  /// The keys, of `keys`, that query i of sequence b sees; {0, 0} if it sees none.
  KeyRange range(Index b, Index i, Index keys) const;
  Index count(Index b, Index i, Index keys) const;
  /// The largest number of keys, of `keys`, that any query may see.
  Index widest(Index keys) const;
  /// 1 where a query sees a key, else 0: [B or 1, 1, queries, keys].
  Tensor mask(Index queries, Index keys, DType dtype) const;
  /// count() of every query: [B or 1, 1, queries, 1].
  Tensor counts(Index queries, Index keys, DType dtype) const;
};

/// Dropout of weights [B, H, n, m]: element (b, h, i, j) takes draw ((b H + h) n + i) m + j of the stream, as in dropout().
struct WeightDropout {
  double rate;
  Stream stream;
};

/// Hard attention: one key J for each query, c_i = v_J, instead of the expectation Σ_j w_ij v_j (Xu et al. 2015, section 4.1).
struct HardRead {
  enum class ChosenBy {
    largest,           ///< J = argmax_j w_ij
    sampled,           ///< P(J = j) = w_ij / Σ_j w_ij, by inversion: the first key where the running sum passes u Σ_j w_ij
    straight_through,  ///< as sampled; gradients of the weights as if c_i were Σ_j w_ij v_j (Bengio et al. 2013)
    gumbel  ///< J = argmax_j y_ij, y_i = softmax((log w_i + g_i)/τ), g Gumbel noise; gradients as if c_i were Σ_j y_ij v_j (Jang et al.
            ///< 2017)
  };
  ChosenBy choice = ChosenBy::largest;
  double temperature = 1;            ///< τ
  std::vector<Stream> streams = {};  ///< of sequence and head, b H + h; unused by largest. The draw is the query's position
  Tensor chosen = {};                ///< J where already known: int64 [B, H, n]
  bool scored = false;               ///< also return w_iJ and the row's entropy, for gradient estimators

  /// Whether the weights' gradients include those of Σ_j w_ij v_j.
  bool as_if_soft() const { return choice == ChosenBy::straight_through || choice == ChosenBy::gumbel; }
};

/// Maps u in [0, 1) into (0, 1), so that −log(−log u) is finite.
inline double inside_of_unit(double u) { return std::min(u + 0x1p-54, 1 - 0x1p-53); }

/// A hard read of weights [B, H, n, m]: r with c_i = Σ_j r_ij v_j, 1 at J and 0 elsewhere. A row of zeros has J = 0 and gives zeros.
struct ReadWeights {
  Tensor read;         ///< [B, H, n, m]
  Tensor probability;  ///< if scored: w_iJ, [B, H, n]; 1 for a row of zeros
  Tensor entropy;      ///< if scored: −Σ_j w_ij log w_ij
};
/// Composed of simple operations, with the choice's gradients; the positions of queries and keys number the draws.
ReadWeights composed_read(HardRead const& hard, Tensor const& weights, Visibility const& visibility);

/// Luong's Gaussian factors exp(−(j − centre)²/(2 deviation²)): centres [B, H, n, 1] → [B, H, n, keys].
Tensor gaussian_around(Tensor const& centres, double deviation, Index keys);
/// Expands a bias by distance to all pairs: relative [H, n + m − 1] → [1, H, n, m]; element (i, j) is relative[j − i + n − 1].
Tensor relative_bias(Tensor const& relative, Index queries, Index keys);
/// 1 inside each query's window (see AttentionForm), else 0. centres [B or 1, H or 1, n, 1] → [B, H or 1, n, keys].
Tensor window_mask(Tensor const& centres, double reach, Visibility const& visibility, Index keys);
/// Frequencies of rotary positions: at position p, pair i of a head of width d is rotated by the angle (p/stretch)/base^{2i/d}.
struct RotaryFrequencies {
  double base = 10000, stretch = 1;
};
/// Rotary positions (Su et al. 2021) of x [B, T, H·d]: rotates each pair (2i, 2i+1) of each head of token t by the angle of position p =
/// offset + t; `back`: by the negative angle.
Tensor rotary(Tensor const& x, Index heads, Index offset = 0, RotaryFrequencies const& frequencies = {}, bool back = false);
/// x [B, T, H·d] → [B, H, T, d], and back.
Tensor split_heads(Tensor const& x, Index heads);
Tensor merge_heads(Tensor const& x);

}  // namespace heed
