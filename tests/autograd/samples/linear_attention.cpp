// Linear attention and its triangular systems.

#include "autograd/attention/linear_attention.hpp"

#include "tests/autograd/samples/operation_check.hpp"

namespace heed::test {

namespace {

using Attend = LinearResult (*)(LinearForm const&, LinearInputs const&, bool);

struct LinearCase {
  Index length = 5, decays = 0;  ///< per head: 0, 1 or the keys' width
  bool erases = false, read_first = false, from_state = false, wants_state = false;
};
constexpr Index head_count = 2, key_size = 2, value_size = 3;

Sample linear_sample(LinearCase const& c) {
  std::vector<SampleInput> inputs{
      {{2, c.length, head_count * key_size}}, {{2, c.length, head_count * key_size}, {-1, 1}}, {{2, c.length, head_count * value_size}}};
  if (c.erases) inputs.push_back({{2, c.length, head_count * key_size}, {-1, 1}});
  if (c.decays > 0) inputs.push_back({{2, c.length, head_count * c.decays}, {-1, -0.1}});
  if (c.from_state) inputs.push_back({{2, head_count, key_size, value_size}});
  auto const by = [c](Attend attend) {
    return [c, attend](Tensors const& x) {
      std::size_t next = 3;
      LinearInputs in{.query = x[0], .key = x[1], .value = x[2]};
      if (c.erases) in.erase = x[next++];
      if (c.decays > 0) in.log_decay = x[next++];
      if (c.from_state) in.state = x[next];
      LinearResult const result = attend({.heads = head_count, .read_first = c.read_first}, in, c.wants_state);
      return c.wants_state ? concatenate({reshape(result.context, {-1}), reshape(result.state, {-1})}, 0) : result.context;
    };
  };
  return {inputs, by(linear_attention), by(linear_attention_reference)};
}

std::vector<Sample> linear_samples() {
  return {linear_sample({}),
          linear_sample({.length = 1, .decays = key_size, .erases = true}),
          linear_sample({.length = 0, .from_state = true, .wants_state = true}),
          linear_sample({.length = 18, .decays = 1, .erases = true, .from_state = true}),
          linear_sample({.length = 18, .decays = key_size, .from_state = true, .wants_state = true}),
          linear_sample({.erases = true, .read_first = true, .from_state = true}),
          linear_sample({.decays = 1, .read_first = true, .wants_state = true}),
          linear_sample({.decays = key_size, .erases = true, .from_state = true, .wants_state = true})};
}

ErrorCase misshaped(char const* message, LinearInputs const& in) {
  return fails(message, [in] { linear_attention({.heads = 2}, in); });
}

Tensor reference_of_two_heads(Tensors const& x) {
  return linear_attention_reference({.heads = 2}, {.query = x[0], .key = x[1], .value = x[2]}).context;
}

/// Column by column of the solution, W = R − A W.
Tensor solved_by_rows(Tensor const& a, Tensor const& right, bool transposed) {
  Tensor const matrix = transposed ? transpose(tril(a, -1)) : tril(a, -1);
  Tensor w = right;
  for (Index i = 1; i < a.size(-1); ++i) w = right - matmul(matrix, w);
  return w;
}
Sample solve_sample(Shape const& a, Shape const& right, bool transposed) {
  auto const by = [=](auto const& solve) { return [=](Tensors const& x) { return solve(x[0], x[1], transposed); }; };
  return {{{a, {-0.5, 0.5}}, {right}}, by(solve_unit_lower), by(solved_by_rows)};
}

DeclaredChecks const linear_attention_checks{{
    {"linear_attention",
     linear_samples(),
     {misshaped("linear_attention: query [2, 5, 4], key [2, 5, 4], value [2, 4, 6], erase none, log_decay none, state none of 2 heads",
                {.query = zeros({2, 5, 4}), .key = zeros({2, 5, 4}), .value = zeros({2, 4, 6})}),
      misshaped("log_decay [2, 5, 8]",
                {.query = zeros({2, 5, 4}), .key = zeros({2, 5, 4}), .value = zeros({2, 5, 6}), .log_decay = zeros({2, 5, 8})}),
      misshaped("state [2, 2, 3, 2]",
                {.query = zeros({2, 5, 4}), .key = zeros({2, 5, 4}), .value = zeros({2, 5, 6}), .state = zeros({2, 2, 3, 2})}),
      misshaped("linear_attention: dtypes differ: float64 and float32",
                {.query = zeros({2, 5, 4}), .key = zeros({2, 5, 4}), .value = zeros({2, 5, 6}, DType::float32)})}},
    {"linear_attention_reference", {several({{1, 3, 4}, {1, 3, 4}, {1, 3, 2}}, reference_of_two_heads)}},
    {"solve_unit_lower",
     {solve_sample({4, 4}, {4, 3}, false), solve_sample({2, 3, 3}, {2, 3, 2}, true), solve_sample({2, 1, 19, 19}, {2, 1, 19, 1}, false),
      solve_sample({18, 18}, {18, 9}, true), solve_sample({1, 1}, {1, 2}, false), solve_sample({0, 0}, {0, 2}, true)},
     {fails("solve_unit_lower: A [3, 3] and R [4, 2]: wants [..., n, n] and [..., n, m]", solve_unit_lower, zeros({3, 3}), zeros({4, 2}),
            false)}},
}};

}  // namespace

}  // namespace heed::test
