#pragma once

#include <cstdint>

#include "autograd/random.hpp"
#include "autograd/tensor.hpp"

/// What attention is composed of (attention.cpp, visibility.cpp, rotary.cpp). What all operations have in common:
/// autograd/operations.hpp.
namespace heed {

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

}  // namespace heed
