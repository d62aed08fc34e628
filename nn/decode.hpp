#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "nn/model.hpp"

namespace heed {

/// Targets that are read token by token, a row for each source, or texts that are continued: what was read is kept, so that each token is
/// read once. The model must outlive it, unchanged.
class Decoding {
 public:
  virtual ~Decoding() = default;
  /// Reads one token more of every row, int64 [R], or several, [R, n]; the scores of those after the last, [R, V]. A model that continues
  /// texts has as many rows as the first tokens that it is given.
  virtual Tensor scores(Tensor const& tokens) = 0;
  /// Forgets the tokens that were read; what it writes of stays.
  virtual void restart() = 0;
  /// Goes on with these rows alone, in this order; a row may be named more than once.
  virtual void keep(std::span<std::int64_t const> rows) = 0;
};

/// The last place of every row: x [R, n, width] → [R, width].
Tensor last_place(Tensor const& x);

/// What a row was decoded to, and the logarithm of its probability, that of its end included.
struct Decoded {
  std::vector<std::int64_t> tokens;
  double score = 0;
};

/// The most probable token at every step, of all rows of the batch's source at once, from the token `begin` on, which is not told, until
/// `end`, which is not told either, or for `most` tokens. Records nothing. Throws Error for a model that decodes no source, NonFinite if
/// a score is NaN or the largest is infinite.
std::vector<Decoded> greedy(Model const& model, Batch const& given, std::int64_t begin, std::int64_t end, std::int64_t most);

}  // namespace heed
