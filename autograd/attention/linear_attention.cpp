// Linear attention: its operation. Contexts and, if wanted, last states are one array in the graph, one after the other.

#include "autograd/attention/linear_attention.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "autograd/attention/linear_kernel.hpp"
#include "autograd/elementwise.hpp"
#include "autograd/graph_memory.hpp"
#include "autograd/kernels/dispatch.hpp"
#include "autograd/node.hpp"
#include "autograd/ops/shape.hpp"

namespace heed {

namespace {

[[noreturn]] void refuse(LinearForm const& form, LinearInputs const& in) {
  auto const shape = [](Tensor const& x) { return x.defined() ? to_string(x.shape()) : "none"; };
  throw Error(fmt::format(
      "linear_attention: query {}, key {}, value {}, erase {}, log_decay {}, state {} of {} heads: wants [B, T, H·d] twice, [B, "
      "T, H·e], [B, T, H·d], [B, T, H] or [B, T, H·d], and [B, H, d, e]",
      shape(in.query), shape(in.key), shape(in.value), shape(in.erase), shape(in.log_decay), shape(in.state), form.heads));
}

Tensor joined_result(LinearResult const& result, bool wants_state) {
  if (!wants_state) return result.context;
  return concatenate({reshape(result.context, {-1}), reshape(result.state, {-1})}, 0);
}

/// Parts of the operation's array: as operations of the graph, or of an array alone.
LinearResult parted_result(kernels::LinearExtents const& x, Tensor const& y, bool wants_state) {
  if (!wants_state) return {y};
  Index const contexts = x.batch * x.length * x.heads * x.value_width;
  Shape const context{x.batch, x.length, x.heads * x.value_width}, state{x.batch, x.heads, x.width, x.value_width};
  if (!y.requires_grad()) return {y.rows(0, contexts).viewed(context), y.rows(contexts, state.elements()).viewed(state)};
  return {reshape(slice(y, 0, 0, contexts), {context.begin(), context.end()}),
          reshape(slice(y, 0, contexts, y.elements()), {state.begin(), state.end()})};
}

}  // namespace

kernels::LinearExtents linear_extents(LinearForm const& form, LinearInputs const& in) {
  if (form.heads < 1 || !in.query.defined() || in.query.rank() != 3 || !in.value.defined() || in.value.rank() != 3) refuse(form, in);
  Index const batch = in.query.size(0), length = in.query.size(1), rows = in.query.size(2), columns = in.value.size(2);
  kernels::LinearExtents const x{.batch = batch,
                                 .length = length,
                                 .heads = form.heads,
                                 .width = rows / form.heads,
                                 .value_width = columns / form.heads,
                                 .decays = in.log_decay.defined() && in.log_decay.rank() == 3 ? in.log_decay.size(2) / form.heads : 0,
                                 .erases = in.erase.defined(),
                                 .read_first = form.read_first};
  auto const fits = [](Tensor const& array, Shape const& shape, bool optional) {
    return array.defined() ? array.shape() == shape : optional;
  };
  bool const all_fit = rows % form.heads == 0 && columns % form.heads == 0 && fits(in.key, in.query.shape(), false) &&
                       fits(in.value, {batch, length, columns}, false) && fits(in.erase, in.query.shape(), true) &&
                       (fits(in.log_decay, in.query.shape(), true) || fits(in.log_decay, {batch, length, form.heads}, true)) &&
                       fits(in.state, {batch, form.heads, x.width, x.value_width}, true);
  if (!all_fit) refuse(form, in);
  for (Tensor const& each : tensors_of(in))
    if (each.defined()) require_same_real("linear_attention", in.query, each);
  return x;
}

LinearResult linear_attention(LinearForm const& form, LinearInputs const& in, bool wants_state) {
  kernels::LinearExtents const x = linear_extents(form, in);
  std::vector<Tensor> inputs = tensors_of(in);
  bool const recorded = std::ranges::any_of(inputs, records<Tensor>);
  DType const dtype = in.query.dtype();
  Index const contexts = x.batch * x.length * x.heads * x.value_width, states = x.batch * x.heads * x.state_size();
  Tensor y(wants_state ? Shape{contexts + states} : Shape{x.batch, x.length, x.heads * x.value_width}, dtype);
  Tensor kept = recorded ? Tensor({x.batch, x.heads, x.states(), x.width, x.value_width}, dtype) : Tensor();
  kernels::with_real(dtype, [&](auto type) {
    auto* const context = y.mutable_data<decltype(type)>().data();
    auto* const state = wants_state ? context + contexts : nullptr;
    if (form.by_steps && !recorded) return kernels::linear_steps(x, in, context, state);
    kernels::linear_forward(x, in, context, state, kept);
  });
  if (!recorded) return parted_result(x, y, wants_state);
  y = record_fused(
      "linear_attention", std::move(inputs), std::move(y), keep_inputs,
      [x, kept, contexts, wants_state](BackwardContext const& s) {
        return kernels::with_real(s.dy.dtype(), [&](auto type) {
          auto const* const dcontext = s.dy.data<decltype(type)>().data();
          return tensors_of(
              kernels::linear_backward(x, linear_inputs(s.inputs), kept, dcontext, wants_state ? dcontext + contexts : nullptr));
        });
      },
      [form, wants_state](std::vector<Tensor> const& tensors) {
        return joined_result(linear_attention_in_chunks(form, linear_inputs(tensors), wants_state), wants_state);
      });
  if (y.node()) y.node()->depth = std::max<Index>(1, x.states());
  return parted_result(x, y, wants_state);
}

}  // namespace heed
