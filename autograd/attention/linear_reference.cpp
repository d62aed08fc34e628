// Linear attention composed of simple operations: token by token, and chunk by chunk for derivatives that no kernel has.

#include <algorithm>
#include <vector>

#include "autograd/attention/linear_kernel.hpp"
#include "autograd/elementwise.hpp"
#include "autograd/graph_memory.hpp"
#include "autograd/ops/operations.hpp"

namespace heed {

namespace {

/// The arrays by head: [B, H, T, …], and the state that the recurrence begins with.
LinearInputs by_head(LinearForm const& form, kernels::LinearExtents const& x, LinearInputs const& in) {
  auto const split = [&](Tensor const& array) { return array.defined() ? split_heads(array, form.heads) : Tensor(); };
  Tensor const start = in.state.defined() ? in.state : Tensor::zeros({x.batch, x.heads, x.width, x.value_width}, in.query.dtype());
  return {split(in.query), split(in.key), split(in.value), split(in.erase), split(in.log_decay), start};
}
/// Tokens [first, last) of arrays by head.
LinearInputs tokens_of(LinearInputs const& in, Index first, Index last) {
  auto const some = [&](Tensor const& array) { return array.defined() ? slice(array, 2, first, last) : Tensor(); };
  return {some(in.query), some(in.key), some(in.value), some(in.erase), some(in.log_decay), in.state};
}

LinearResult result_of(kernels::LinearExtents const& x, std::vector<Tensor> const& contexts, Tensor const& state, bool wants_state) {
  Tensor const context =
      contexts.empty() ? Tensor::zeros({x.batch, 0, x.heads * x.value_width}, state.dtype()) : merge_heads(concatenate(contexts, 2));
  return {context, wants_state ? state : Tensor()};
}

/// Tokens of a chunk; with decays per entry of the keys fewer, for arrays by pair and entry.
Index tokens_at_once(kernels::LinearExtents const& x) { return x.decays > 1 ? 16 : 64; }

/// Contexts of some tokens followed by the state after them: [B, H, tokens + d, e].
Tensor composed_chunk(bool read_first, LinearInputs const& in) {
  Index const last = in.key.size(2) - 1;
  Tensor between, since, until, all;  // e^Σg, over the tokens from j + 1 to i: [B, H, d or 1, i, j]; up to i; from j + 1 on; of all tokens
  if (in.log_decay.defined()) {
    Tensor const g = unsqueeze(transpose(in.log_decay), -1);
    Shape pairs = g.shape();
    pairs.set(-1, last + 1);
    between = exp(cumsum(tril(expand(g, pairs), -1), -2));
    since = exp(cumsum(in.log_decay, 2));
    until = transpose(squeeze(slice(between, -2, last, last + 1), -2));
    all = transpose(slice(since, 2, last, last + 1));
  }
  auto const decayed = [](Tensor const& array, Tensor const& factor) { return factor.defined() ? array * factor : array; };
  auto const scores = [&](Tensor const& reader, Index diagonal) {  // Σ_d r_id k_jd e^Σg
    if (!between.defined() || between.size(2) == 1)
      return tril(decayed(matmul(reader, in.key, false, true), between.defined() ? squeeze(between, 2) : Tensor()), diagonal);
    return tril(sum(unsqueeze(transpose(reader), -1) * unsqueeze(transpose(in.key), -2) * between, {2}), diagonal);
  };
  Tensor written = in.value;
  if (in.erase.defined()) written = solve_unit_lower(scores(in.erase, -1), in.value - matmul(decayed(in.erase, since), in.state));
  Tensor const context = matmul(decayed(in.query, since), in.state) + matmul(scores(in.query, read_first ? -1 : 0), written);
  return concatenate({context, decayed(in.state, all) + matmul(decayed(in.key, until), written, true)}, 2);
}

}  // namespace

LinearResult linear_attention_reference(LinearForm const& form, LinearInputs const& inputs, bool wants_state) {
  kernels::LinearExtents const x = linear_extents(form, inputs);
  LinearInputs const all = by_head(form, x, inputs);
  Tensor state = all.state;
  std::vector<Tensor> contexts;
  for (Index t = 0; t < x.length; ++t) {
    LinearInputs const at = tokens_of(all, t, t + 1);  // rows [B, H, 1, …]
    if (at.log_decay.defined()) state = transpose(exp(at.log_decay)) * state;
    if (form.read_first) contexts.push_back(matmul(at.query, state));
    Tensor const written = at.erase.defined() ? at.value - matmul(at.erase, state) : at.value;
    state = state + matmul(at.key, written, true);
    if (!form.read_first) contexts.push_back(matmul(at.query, state));
  }
  return result_of(x, contexts, state, wants_state);
}

LinearResult linear_attention_in_chunks(LinearForm const& form, LinearInputs const& inputs, bool wants_state) {
  kernels::LinearExtents const x = linear_extents(form, inputs);
  LinearInputs all = by_head(form, x, inputs);
  std::vector<Tensor> contexts;
  for (Index first = 0; first < x.length; first += tokens_at_once(x)) {
    Index const count = std::min(tokens_at_once(x), x.length - first);
    Tensor const both = checkpoint([x](std::vector<Tensor> const& in) { return composed_chunk(x.read_first, linear_inputs(in)); },
                                   tensors_of(tokens_of(all, first, first + count)));
    contexts.push_back(slice(both, 2, 0, count));
    all.state = slice(both, 2, count, count + x.width);
  }
  return result_of(x, contexts, all.state, wants_state);
}

}  // namespace heed
