#pragma once

#include <algorithm>
#include <vector>

#include "autograd/random.hpp"
#include "autograd/tensor.hpp"

namespace heed {

struct Visibility;

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

}  // namespace heed
