// Scores that somebody might write: their derivatives are found, they are the reference's, and their memory grows with n alone.

#include "autograd/attention/fused_attention.hpp"
#include "autograd/attention/pair_formula.hpp"
#include "tests/gradients.hpp"

TEST_SUITE("formula_scores") {
  using namespace heed;
  using Tensors = std::vector<Tensor>;

  namespace {

  struct Formula {
    std::string name;
    std::shared_ptr<PairSum const> sum;
    std::shared_ptr<PairFinish const> finish;
    Index parameters;
  };

  std::vector<Formula> formulas() {
    return {{"laplace", pair_sum([](auto q, auto k) { return abs(q - k); }),
             pair_finish([](auto s, auto const& at) { return s * like(-1 / at.root_width, s); }), 0},
            {"|q − k|^1.5", pair_sum([](auto q, auto k) { return -pow(abs(q - k), 1.5); }), {}, 0},
            {"mixture of two", pair_sum([](auto q, auto k) { return q * k; }),
             pair_finish([](auto s, auto const& at) { return at.parameter * tanh(s) + at.second_parameter * s; }), 2},
            {"by distance", pair_sum([](auto q, auto k) { return q * k; }),
             pair_finish([](auto s, auto const& at) { return s - at.parameter * log1p(abs(at.distance)); }), 1}};
  }

  AttentionForm form_of(Formula const& formula, Index heads) {
    AttentionForm form{.heads = heads, .visibility = {.causal = true, .lengths = {}, .offset = 0}};
    form.sum = formula.sum, form.finish = formula.finish;
    return form;
  }
  AttentionInputs inputs_of(Tensors const& x) {
    AttentionInputs in{x[0], x[1], x[2]};
    if (x.size() > 3) in.parameter = x[3];
    return in;
  }

  /// Queries near whole numbers and keys between them: nowhere near the kink of |q − k|.
  Tensors drawn(Formula const& formula, DType dtype) {
    auto const near = [](Shape const& shape, double shift, char const* name) {
      Tensor const jitter = Tensor::uniform(shape, Stream(1, name), DType::float64, -0.15, 0.15);
      std::vector<double> values;
      for (Index i = 0; i < jitter.elements(); ++i) values.push_back(static_cast<double>(i * 7 % 5 - 2) + shift + jitter.at(i));
      return Tensor::of(values, shape, DType::float64);
    };
    Tensors x{near({2, 6, 6}, 0, "query"), near({2, 6, 6}, 0.5, "key"), Tensor::normal({2, 6, 4}, Stream(1, "value"), DType::float64)};
    if (formula.parameters > 0) x.push_back(Tensor::uniform({2, formula.parameters}, Stream(1, "p"), DType::float64, 0.5, 1.5));
    for (Tensor& each : x) each = each.to(dtype);
    return x;
  }

  /// The pool's bytes that a context and its gradients hold at their peak, beyond the inputs.
  double peak(AttentionForm const& form, Index parameters, Index length) {
    Threads const one(1);  // of more, how many work at once is chance
    Shape const shape{1, length, form.heads * 64};
    Tensors x;
    for (char const* name : {"query", "key", "value"}) x.push_back(Tensor::normal(shape, Stream(1, name), DType::float32));
    if (parameters > 0) x.push_back(Tensor::ones({form.heads, parameters}, DType::float32));
    for (Tensor& each : x) each.set_requires_grad();
    Tensor const seed = Tensor::ones(shape, DType::float32);
    return static_cast<double>(test::peak_of([&] { grad({fused_attention(form, inputs_of(x))}, x, {seed}); }));
  }

  }  // namespace

  TEST_CASE("derivatives of first and second order are those of finite differences") {
    for (Formula const& formula : formulas()) {
      INFO(formula.name);
      auto const f = [&](Tensors const& x) { return fused_attention(form_of(formula, 2), inputs_of(x)); };
      Tensors const x = drawn(formula, DType::float64);
      for (CheckResult const& found : {gradcheck(f, x), gradgradcheck(f, x, 1e-6, 3e-4)}) test::check_ok(found);
      test::check_jvp(f, x);
    }
  }

  TEST_CASE("the kernels are the reference, in both precisions") {
    for (Formula const& formula : formulas()) {
      INFO(formula.name);
      for (auto const& [dtype, tolerance] : {std::pair{DType::float64, 1e-13}, std::pair{DType::float32, 2e-6}}) {
        Tensors const x = drawn(formula, dtype);
        Tensor const found = fused_attention(form_of(formula, 2), inputs_of(x));
        CHECK(test::absolute_difference(found, attention_reference(form_of(formula, 2), inputs_of(x))) <= tolerance);
      }
    }
  }

  TEST_CASE("memory grows with the tokens, not with their square, and is about that of q·k") {
    AttentionForm const dot{.heads = 2, .visibility = {.causal = true, .lengths = {}, .offset = 0}};
    double const reference_loss = peak(dot, 0, 2048);
    for (Formula const& formula : formulas()) {
      INFO(formula.name);
      double const whole = peak(form_of(formula, 2), formula.parameters, 2048), half = peak(form_of(formula, 2), formula.parameters, 1024);
      CHECK(whole < 2.1 * half);
      CHECK(whole < 1.3 * reference_loss);
    }
  }
}
