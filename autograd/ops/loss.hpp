#pragma once

#include <optional>

#include "autograd/random.hpp"
#include "autograd/tensor.hpp"

/// Losses and noise (loss.cpp). Rules common to all operations: autograd/ops/operations.hpp.
namespace heed {

/// The logit of a class that cannot be chosen: a position outside a passage. Label smoothing leaves it out.
inline constexpr double no_choice = -1e9;

/// Mean of −Σ_c t_c log softmax(logits)_c over the targets other than `ignore`, with t the smoothed target: 1 − ε at the target plus ε/m
/// at each of the m classes that can be chosen, all V unless a logit is no_choice. logits [..., V], targets int64 [...]. `count`: divide by
/// this instead of the number of targets (for micro-batches of one step). Zero if no target counts.
Tensor cross_entropy(Tensor const& logits, Tensor const& targets, double label_smoothing = 0, Index ignore = -1,
                     std::optional<double> count = std::nullopt);
/// cross_entropy(linear(x, weight, bias), targets, …): x [..., in], weight [V, in], bias [V] or undefined, targets int64 [...]. Logits
/// larger than logits_bytes() are computed in blocks and, if the graph is being recorded, turned into their gradients in place and
/// multiplied into those of the inputs, which the loss then holds. Ignored rows cost nothing. Second derivatives use whole logits.
Tensor linear_cross_entropy(Tensor const& x, Tensor const& weight, Tensor const& bias, Tensor const& targets, double label_smoothing = 0,
                            Index ignore = -1, std::optional<double> count = std::nullopt);
/// The largest size at which logits are held whole; 16 MiB unless set.
Index logits_bytes();
void set_logits_bytes(Index bytes);
/// How many of `rows` rows of logits are held at once: all, or blocks of equal size within logits_bytes(), but at least 256 rows.
Index logits_at_once(Index rows, Index classes, DType dtype);
/// x/(1 − rate), or 0 with probability `rate`; element i uses draw i of the stream (Srivastava et al. 2014).
Tensor dropout(Tensor const& x, double rate, Stream const& stream);

}  // namespace heed
