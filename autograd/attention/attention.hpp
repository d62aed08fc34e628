#pragma once

#include "autograd/random.hpp"
#include "autograd/tensor.hpp"

/// Building blocks of attention (attention.cpp, visibility.cpp, rotary.cpp). Rules common to all operations: autograd/ops/operations.hpp.
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
