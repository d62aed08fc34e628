// Self-attention over three tokens, every number known: keys, queries and values, weights, outputs and gradients in float64.

#include "autograd/attention/fused_attention.hpp"
#include "tests/autograd/tensors.hpp"

using namespace heed;
using test::Values;

namespace {

Tensor matrix(Values const& values, Index rows) { return Tensor::of(values, {rows, std::ssize(values) / rows}); }

Tensor const x = matrix({1, 0, 1, 0, 0, 2, 0, 2, 1, 1, 1, 1}, 3);
Tensor const key_weight = matrix({0, 0, 1, 1, 1, 0, 0, 1, 0, 1, 1, 0}, 4);
Tensor const query_weight = matrix({1, 0, 1, 1, 0, 0, 0, 0, 1, 0, 1, 1}, 4);
Tensor const value_weight = matrix({0, 2, 0, 0, 3, 0, 1, 0, 3, 1, 1, 0}, 4);

Values const key{0, 1, 1, 4, 4, 0, 2, 3, 1};
Values const query{1, 0, 2, 2, 2, 2, 2, 1, 3};
Values const value{1, 2, 3, 2, 8, 0, 2, 6, 3};
Values const scores{2, 4, 4, 4, 16, 12, 4, 12, 10};

/// One way to weigh the values, with what must come out.
struct Form {
  std::string name;
  double scale;
  bool causal;
  Values weights, outputs;
};

Values const unscaled_weights{0.06337893833303762, 0.4683105308334812,     0.4683105308334812, 6.033664854558337e-06, 0.9820078648958167,
                              0.01798610143932864, 0.00029538722303456454, 0.8805369017749616, 0.11916771100200385};
Values const unscaled_outputs{1.9366210616669624,   6.683105308334811,  1.5950684074995565, 1.9999939663351451, 7.963991595132215,
                              0.053976405312549595, 1.9997046127769653, 7.759892254657784,  0.35838929467511527};
Values const scaled_weights{0.13612579755693346, 0.4319371012215333,    0.4319371012215333, 0.0008904473906323324, 0.9088426472149936,
                            0.09026690539437415, 0.0074448923770739665, 0.7547075806414643, 0.23784752698146175};
Values const scaled_outputs{1.8638742024430666, 6.319371012215333, 1.7041886963354003, 1.9991095526093678, 7.814123504867458,
                            0.2734720583550195, 1.992555107622926, 7.479635591774633,  0.7358772580756072};
Values const causal_weights{
    1, 0, 0, 6.14417460221471e-06, 0.9999938558253978, 0, 0.00029538722303456454, 0.8805369017749616, 0.11916771100200385};
Values const causal_outputs{
    1, 2, 3, 1.9999938558253978, 7.999963134952387, 1.8432523806644153e-05, 1.9997046127769653, 7.759892254657784, 0.35838929467511527};
std::vector<Form> const forms{{"unscaled", 1, false, unscaled_weights, unscaled_outputs},
                              {"scaled", 1 / std::sqrt(3.0), false, scaled_weights, scaled_outputs},
                              {"causal", 1, true, causal_weights, causal_outputs}};

// of L = Σ outputs, unscaled
Values const value_gradient{0.06368035922092674, 0.06368035922092674, 0.06368035922092674, 2.3308552975042596, 2.3308552975042596,
                            2.3308552975042596,  0.6054643432748137,  0.6054643432748137,  0.6054643432748137};
Values const score_gradient{-.26712921828966585, -.1005906562719075,    .3677198745615737,   -2.424303590591204e-05, -.017638792646869902,
                            .017663035682775313, -.0012164004969203973, -.10389116963653909, .10510757013345985};
Values const input_gradient{.023072374607373936, .2532428097742469,  .3540472065868826, .3907437630971358,
                            4.095987881686288,   6.474517457521846,  9.201891227733629, 4.178939745311324,
                            2.195558848796008,   2.3647382192382587, 2.666182184234805, 1.967056215236524};

void check_equal(Tensor const& found, Values const& wanted) {
  CHECK(test::absolute_difference(found.viewed({found.elements()}), test::vector_of(wanted)) <= 1e-12);
}

/// All that is computed on the way, by operations: x requires a gradient.
struct Attended {
  Tensor x, key, query, value, scores, weights, outputs;
};
Attended attended(Form const& form) {
  Attended a;
  a.x = x.clone().set_requires_grad();
  a.key = matmul(a.x, key_weight);
  a.query = matmul(a.x, query_weight);
  a.value = matmul(a.x, value_weight);
  a.scores = matmul(a.query, a.key, false, true);
  Tensor const scaled = scale(a.scores, form.scale);
  a.weights = form.causal ? masked_softmax(scaled, tril(Tensor::ones({3, 3}, DType::float64))) : softmax(scaled);
  a.outputs = matmul(a.weights, a.value);
  return a;
}

/// The same by the fused operation.
Tensor fused(Form const& form, Tensor const& q, Tensor const& k, Tensor const& v) {
  auto const batch = [](Tensor const& t) { return reshape(t, {1, 3, 3}); };
  Visibility const visibility{.causal = form.causal, .lengths = {}, .offset = 0};
  return reshape(fused_attention({.heads = 1, .visibility = visibility, .scale = form.scale}, {batch(q), batch(k), batch(v)}), {3, 3});
}

}  // namespace

TEST_SUITE("worked_example") {
  TEST_CASE("keys, queries, values and scores") {
    Attended const a = attended(forms[0]);
    CHECK(a.key.to_vector() == key);
    CHECK(a.query.to_vector() == query);
    CHECK(a.value.to_vector() == value);
    CHECK(a.scores.to_vector() == scores);
  }

  TEST_CASE("weights and outputs, unscaled, scaled and causal") {
    for (Form const& form : forms) {
      CAPTURE(form.name);
      Attended const a = attended(form);
      check_equal(a.weights, form.weights);
      check_equal(sum(a.weights, {-1}), Values(3, 1));
      check_equal(a.outputs, form.outputs);
      check_equal(fused(form, a.query, a.key, a.value), form.outputs);
    }
  }

  TEST_CASE("gradients of the sum of all outputs: values, scores and inputs") {
    Attended const a = attended(forms[0]);
    auto const found = grad({sum(a.outputs)}, {a.value, a.scores, a.x});
    check_equal(found[0], value_gradient);
    check_equal(found[1], score_gradient);
    check_equal(found[2], input_gradient);
    backward(sum(a.outputs));
    check_equal(a.x.grad(), input_gradient);
  }

  TEST_CASE("the fused operation's gradients, and its reference's, are the operations' own in every form") {
    Tensor const uneven = matrix({1, -2, 3, 0.5, 4, -1, 2, 0.25, -3}, 3);  // another weight on every output, so that nothing cancels
    for (Form const& form : forms)
      for (Tensor const& seed : {uneven, Tensor::ones({3, 3}, DType::float64)})
        for (bool const create_graph : {false, true}) {
          INFO("form.name ", form.name, ", create_graph ", create_graph);
          Attended const a = attended(form);
          auto const wanted = grad({a.outputs}, {a.query, a.key, a.value, a.x}, {seed});
          auto const found = grad({fused(form, a.query, a.key, a.value)}, {a.query, a.key, a.value, a.x}, {seed}, create_graph);
          for (std::size_t i = 0; i < wanted.size(); ++i) check_equal(found[i], wanted[i].to_vector());
        }
  }

  TEST_CASE("a saturated row: without scaling the second token's entropy is a twelfth of the most it could be") {
    auto const entropy = [](Tensor const& weights) { return -sum(weights.rows(1, 1) * log(weights.rows(1, 1))).item(); };
    CHECK(entropy(attended(forms[0]).weights) == doctest::Approx(0.0903).epsilon(1e-3));
    CHECK(entropy(attended(forms[1]).weights) > 3 * entropy(attended(forms[0]).weights));
    CHECK(entropy(softmax(Tensor::zeros({3, 3}, DType::float64))) == doctest::Approx(1.0986).epsilon(1e-4));
  }
}
