#include "autograd/attention/linear_attention.hpp"

#include "autograd/attention/linear_kernel.hpp"
#include "tests/autograd/tensors.hpp"

using namespace heed;
using test::Tensors;

namespace {

constexpr Index chunk = kernels::linear_chunk;

struct Extents {
  Index batch = 2, heads = 2, width = 5, value_width = 3;
};

/// Decays of every strength, one after the other.
Tensor decays(Shape const& shape, DType dtype) {
  constexpr std::array strengths{-0.02, -0.3, 0.0, -1e-4, -1.0, -30.0, -0.05, 0.0, -0.1, -100.0, -1e-4};
  std::vector<double> g(static_cast<std::size_t>(shape.elements()));
  for (std::size_t i = 0; i < g.size(); ++i) g[i] = strengths[(i + i / 7) % strengths.size()];
  return Tensor::of(g, shape, dtype);
}

/// Which of the optional inputs there are; decays per head: 0, 1 or the keys' width.
struct Parts {
  Index decays = 0;
  bool erases = false, from_state = false;
};

LinearInputs inputs_of(Index length, Parts const& parts, DType dtype = DType::float64, Extents const& x = {}) {
  Shape const keys{x.batch, length, x.heads * x.width};
  LinearInputs in{.query = test::normal(keys, "query").to(dtype),
                  .key = 0.5 * test::normal(keys, "key").to(dtype),
                  .value = test::normal({x.batch, length, x.heads * x.value_width}, "value").to(dtype)};
  if (parts.erases) in.erase = 0.4 * in.key + 0.03 * test::normal(keys, "erase").to(dtype);
  if (parts.decays > 0) in.log_decay = decays({x.batch, length, x.heads * parts.decays}, dtype);
  if (parts.from_state) in.state = test::normal({x.batch, x.heads, x.width, x.value_width}, "state").to(dtype);
  return in;
}

/// The tokens [first, last) of inputs, from another state.
LinearInputs tokens_of(LinearInputs const& in, Index first, Index last, Tensor const& state) {
  auto const some = [&](Tensor const& x) { return x.defined() ? slice(x, 1, first, last) : Tensor(); };
  return {some(in.query), some(in.key), some(in.value), some(in.erase), some(in.log_decay), state};
}

Tensors listed(LinearInputs& in) {
  Tensors all;
  for (Tensor* const x : {&in.query, &in.key, &in.value, &in.erase, &in.log_decay, &in.state})
    if (x->defined()) all.push_back(*x = x->detach().set_requires_grad());
  return all;
}

template <class Test>
void for_each_combination(Test const& test) {
  for (Index const decays : {Index{0}, Index{1}, Extents{}.width})
    for (bool const erases : {false, true})
      for (bool const read_first : {false, true})
        for (bool const from_state : {false, true}) {
          INFO("decays ", decays, ", erases ", erases, ", read_first ", read_first, ", from_state ", from_state);
          test(LinearForm{.heads = Extents{}.heads, .read_first = read_first}, Parts{decays, erases, from_state});
        }
}

using Attend = LinearResult (*)(LinearForm const&, LinearInputs const&, bool);

/// Contexts, the last state if it is wanted, and the gradients of all inputs.
Tensors results_of(Attend attend, LinearForm const& form, LinearInputs in, bool wants_state) {
  Tensors const leaves = listed(in);
  LinearResult const result = attend(form, in, wants_state);
  return test::with_gradients(wants_state ? Tensors{result.context, result.state} : Tensors{result.context}, leaves);
}

void check_close(Tensors const& found, Tensors const& expected, double bound) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    double const error = test::relative_difference(found[i], expected[i].to(found[i].dtype()), 0.1);
    CHECK_MESSAGE(error <= bound, "result " << i << ": off by " << error);
  }
}

}  // namespace

TEST_SUITE("linear_attention") {
  TEST_CASE("values and gradients are those of the recurrence") {
    for_each_combination([](LinearForm const& form, Parts const& parts) {
      for (Index const length : {Index{1}, Index{2}, chunk - 1, chunk, chunk + 1, 3 * chunk + 5}) {
        CAPTURE(length);
        bool const wants_state = length % 2 == 0 || parts.from_state;
        LinearInputs const in = inputs_of(length, parts), rounded = inputs_of(length, parts, DType::float32);
        Tensors const expected = results_of(linear_attention_reference, form, in, wants_state);
        check_close(results_of(linear_attention, form, in, wants_state), expected, 1e-12);
        check_close(results_of(linear_attention, form, rounded, wants_state), expected, 1e-5);
      }
    });
  }

  TEST_CASE("heads of other widths, and decays that leave nothing") {
    for (Extents const& x : {Extents{1, 3, 1, 1}, Extents{1, 1, 1, 20}, Extents{1, 1, 40, 1}, Extents{2, 1, 24, 17}})
      for (Index const decays : {Index{0}, Index{1}, x.width})
        for (double const strength : {1.0, 1e4}) {
          INFO("x.width ", x.width, ", x.value_width ", x.value_width, ", decays ", decays, ", strength ", strength);
          LinearForm const form{.heads = x.heads};
          LinearInputs in = inputs_of(chunk + 5, {decays, true, true}, DType::float64, x);
          in.key = scale(in.key, 1 / std::sqrt(static_cast<double>(x.width)));
          if (decays > 0) in.log_decay = scale(in.log_decay, strength);
          check_close(results_of(linear_attention, form, in, true), results_of(linear_attention_reference, form, in, true), 1e-12);
        }
  }

  TEST_CASE("second derivatives are those of the recurrence") {
    for_each_combination([](LinearForm const& form, Parts const& parts) {
      auto const second = [&](Attend attend) {
        LinearInputs in = inputs_of(chunk + 3, parts);
        Tensors const leaves = listed(in);
        LinearResult const result = attend(form, in, true);
        Tensors const y{result.context, result.state};
        Tensors const first = grad(y, leaves, test::projection(y), true);
        return grad(first, leaves, test::projection(first));
      };
      check_close(second(linear_attention), second(linear_attention_reference), 1e-12);
    });
  }

  TEST_CASE("token by token, from where a chunked pass ended") {
    for_each_combination([](LinearForm const& form, Parts const& parts) {
      LinearInputs const in = inputs_of(chunk + 9, parts);
      LinearForm steps = form;
      steps.by_steps = true;
      LinearResult const expected = linear_attention(form, in, true), found = linear_attention(steps, in, true);
      check_close({found.context, found.state}, {expected.context, expected.state}, 1e-12);
      check_close({linear_attention(steps, in).context}, {expected.context}, 1e-12);
      LinearResult const before = linear_attention(form, tokens_of(in, 0, chunk + 4, in.state), true);
      LinearResult const after = linear_attention(steps, tokens_of(in, chunk + 4, chunk + 9, before.state), true);
      check_close({concatenate({before.context, after.context}, 1), after.state}, {expected.context, expected.state}, 1e-12);
    });
  }

  TEST_CASE("the bits depend neither on the number of threads nor on what follows") {
    Extents const x{.batch = 1, .heads = 5, .width = 16, .value_width = 24};
    for (Index const per_head : {Index{0}, Index{1}, x.width}) {
      CAPTURE(per_head);
      LinearForm const form{.heads = x.heads};
      LinearInputs const in = inputs_of(2 * chunk + 7, {per_head, true, true}, DType::float32, x);
      test::check_threads({1, 2, 3, 5}, [&] { return results_of(linear_attention, form, in, true); });
      Tensor const whole = linear_attention(form, in).context;
      for (Index const length : {Index{1}, Index{20}, chunk, chunk + 3})
        CHECK(same_bits(linear_attention(form, tokens_of(in, 0, length, in.state)).context, slice(whole, 1, 0, length)));
    }
  }

  TEST_CASE("a second derivative holds no state of every token") {
    Extents const x{.batch = 1, .heads = 1, .width = 64, .value_width = 64};
    for (Index const decays : {Index{0}, x.width}) {
      auto const peak = [&](Index length) {
        LinearInputs in = inputs_of(length, {decays, true, false}, DType::float64, x);
        Tensors const leaves = listed(in);
        return test::peak_of([&] {
          Tensor const y = linear_attention({.heads = 1}, in).context;
          Tensors const first = grad({y}, leaves, test::projection({y}), true);
          grad(first, leaves, test::projection(first));
        });
      };
      Index const of_states = 256 * x.width * x.value_width * 8;
      CHECK(peak(512) - peak(256) < of_states);
    }
  }
}
