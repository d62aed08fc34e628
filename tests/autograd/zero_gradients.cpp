// What was not chosen has no gradient: 0, not 0 · ∞.

#include "tests/autograd/tensors.hpp"

namespace heed {
namespace {

using test::leaf, test::Values;
using Function = std::function<Tensor(Tensor const&)>;
constexpr double infinity = std::numeric_limits<double>::infinity();

/// The gradient of Σ f(x), by the ordinary walk and by one that records, and H·1.
struct Found {
  Values gradient, recorded, second;
};

Found derivatives(Function const& f, Values const& at, DType dtype) {
  Tensor const x = leaf(at, dtype), plain = grad(sum(f(x)), x), g = grad(sum(f(x)), x, true);
  return {plain.to_vector(), g.to_vector(), g.requires_grad() ? grad(sum(g), x).to_vector() : Values(at.size(), 0)};
}

/// A function whose slope is infinite, or no number, at 0.
struct Singular {
  std::string name;
  Function of;
};

std::vector<Singular> singular() {
  auto const one = [](Tensor const& x) { return Tensor::ones({}, x.dtype()); };
  return {{"sqrt", [](Tensor const& x) { return sqrt(x); }},          {"log", [](Tensor const& x) { return log(x); }},
          {"rsqrt", [](Tensor const& x) { return rsqrt(x); }},        {"reciprocal", [](Tensor const& x) { return reciprocal(x); }},
          {"1 / x", [=](Tensor const& x) { return one(x) / x; }},     {"x / x", [](Tensor const& x) { return x / x; }},
          {"x⁰·⁵", [](Tensor const& x) { return pow(x, 0.5); }},      {"x⁻²", [](Tensor const& x) { return pow(x, -2); }},
          {"xˣ", [](Tensor const& x) { return pow(x, x); }},          {"log1p(x − 1)", [](Tensor const& x) { return log1p(x - 1); }},
          {"log sqrt", [](Tensor const& x) { return log(sqrt(x)); }}, {"e^(1/x)", [](Tensor const& x) { return exp(reciprocal(x)); }},
          {"x log x", [](Tensor const& x) { return x * log(x); }},    {"x · ∞", [](Tensor const& x) { return x * exp(reciprocal(x)); }}};
}

/// Ways to leave f(x) where x is 0, and take 7 instead.
struct Way {
  std::string name;
  std::function<Tensor(Tensor const& x, Tensor const& f)> of;
};

std::vector<Way> choices() {
  auto const seven = [](Tensor const& x) { return Tensor::full({}, 7, x.dtype()); };
  auto const at_0 = [](Tensor const& x) { return equal(x.detach(), Tensor::zeros({}, x.dtype())); };
  return {
      {"where", [=](Tensor const& x, Tensor const& f) { return where(at_0(x), seven(x), f); }},
      {"where, the other way", [=](Tensor const& x, Tensor const& f) { return where(greater(x.detach(), 0 * x.detach()), f, seven(x)); }},
      {"masked_fill", [=](Tensor const& x, Tensor const& f) { return masked_fill(f, at_0(x), 7); }},
      {"masked_fill, reshaped", [=](Tensor const& x, Tensor const& f) {
         return masked_fill(reshape(f, {-1, 1}), reshape(at_0(x), {-1, 1}), 7);
       }}};
}

}  // namespace

TEST_SUITE("zero_gradients") {
  TEST_CASE("a function that is singular where it was not chosen") {
    for (DType const dtype : {DType::float64, DType::float32})
      for (Singular const& s : singular())
        for (Way const& choice : choices()) {
          INFO("s.name ", s.name, ", choice.name ", choice.name);
          Values const points{0, 1.5, 0.25, 0};
          Found const alone = derivatives(s.of, {1.5, 0.25}, dtype);
          Found const found = derivatives([&](Tensor const& x) { return choice.of(x, s.of(x)); }, points, dtype);
          CHECK(found.gradient == Values{0, alone.gradient[0], alone.gradient[1], 0});
          CHECK(found.recorded == Values{0, alone.recorded[0], alone.recorded[1], 0});
          CHECK(found.second == Values{0, alone.second[0], alone.second[1], 0});
        }
  }

  TEST_CASE("the larger, the smaller and what is clamped") {
    auto const norm = [](Tensor const& x) { return sqrt(sum(x * x)); };
    for (DType const dtype : {DType::float64, DType::float32}) {
      Values const zeros{0, 0, 0};
      auto const one = [&](double c) { return Tensor::full({}, c, dtype); };
      auto const with_one = [&](Tensor const& x) { return stack({x, one(1)}, 0); };
      for (Function const& f : std::vector<Function>{
               [&](Tensor const& x) { return maximum(norm(x), one(1e-10)); }, [&](Tensor const& x) { return maximum(one(1e-10), norm(x)); },
               [&](Tensor const& x) { return minimum(one(-1), norm(x)); }, [&](Tensor const& x) { return clamp(norm(x), 1e-10, 5); },
               [&](Tensor const& x) { return clamp(log(norm(x)), -10, 10); },
               [&](Tensor const& x) { return clamp(rsqrt(sum(x * x)), 0, 10); }, [&](Tensor const& x) { return max(with_one(norm(x))); },
               [&](Tensor const& x) { return relu(log(norm(x))); }, [&](Tensor const& x) { return min(with_one(rsqrt(norm(x)))); },
               [&](Tensor const& x) { return sum(x / maximum(norm(x), one(1e-3))); }}) {
        Found const found = derivatives(f, zeros, dtype);
        CHECK(found.gradient == found.recorded);
        for (auto const& values : {found.gradient, found.second}) CHECK(test::all_finite(values));
      }
      CHECK(derivatives([&](Tensor const& x) { return maximum(norm(x), one(1e-10)); }, zeros, dtype).gradient == zeros);
    }
  }

  TEST_CASE("an infinite gradient goes to what was chosen alone") {
    Tensor const a = leaf({1, 2, 3}), b = leaf({2, 2, 1}), ends = Tensor::full({3}, infinity, DType::float64);
    auto const g = grad({maximum(a, b)}, std::vector{a, b}, {ends});
    CHECK(g[0].to_vector() == Values{0, infinity, infinity});
    CHECK(g[1].to_vector() == Values{infinity, infinity, 0});
    Tensor const c = leaf({-1, 0, 4});
    CHECK(grad({abs(c)}, std::vector{c}, {ends})[0].to_vector() == Values{-infinity, 0, infinity});
    CHECK(grad({max(c)}, std::vector{c}, {Tensor::scalar(infinity, DType::float64)})[0].to_vector() == Values{0, 0, infinity});
  }

  TEST_CASE("at the edge itself") {
    auto const slope = [](Function const& f, double at) { return derivatives(f, {at}, DType::float64).gradient[0]; };
    CHECK(slope([](Tensor const& x) { return sqrt(x); }, 0) == infinity);
    CHECK(slope([](Tensor const& x) { return log(x); }, 0) == infinity);
    CHECK(slope([](Tensor const& x) { return sqrt(sum(x * x)); }, 0) == 0);
    CHECK(slope([](Tensor const& x) { return sqrt(sum_of_squares(x)); }, 0) == 0);
    CHECK(slope([](Tensor const& x) { return sqrt(sum(pow(x, 2))); }, 0) == 0);
  }

  TEST_CASE("log Σ eˣ of infinite rows: zeros, and the limit") {
    for (DType const dtype : {DType::float64, DType::float32}) {
      Values const rows_of_3{-infinity, -infinity, -infinity, 1, infinity, infinity, -infinity, 0, 0, -infinity, 2, infinity};
      Tensor const x = leaf(rows_of_3, {4, 3}, dtype);
      for (bool const rows : {true, false}) {
        Tensor const y = rows ? logsumexp(x, {1}) : logsumexp(transpose(x, 0, 1), {0});
        CHECK(y.to_vector() == Values{-infinity, infinity, y.at(2), infinity});
        CHECK(y.at(2) == doctest::Approx(std::log(2)));
        for (bool const recorded : {false, true}) {
          Tensor const g = grad(sum(masked_fill(y, equal(y.detach(), y.detach() * 0 + 3), 0)), x, recorded);
          CHECK(g.to_vector() == Values{0, 0, 0, 0, 0.5, 0.5, 0, 0.5, 0.5, 0, 0, 1});
          if (recorded) CHECK(grad(sum(g * g), x).to_vector() == Values(12, 0));
        }
      }
    }
  }

  TEST_CASE("directions through what is zero: a walk back of zeros is linear still") {
    // jvp() differentiates a gradient by its seed at zero seeds: a select that forgot them would give zeros.
    Tensor const x = test::vector_of({0.5, 2}), v = test::vector_of({1, -1});
    auto const f = [](Tensor const& p) { return log(p) + p / (p * p) + sqrt(p) + exp(p) + pow(p, 1.5); };
    auto const slope = [](double p) { return 1 / p - 1 / (p * p) + 0.5 / std::sqrt(p) + std::exp(p) + 1.5 * std::sqrt(p); };
    Tensor const found = jvp(f, x, v);
    CHECK(found.at(0) == doctest::Approx(slope(0.5)));
    CHECK(found.at(1) == doctest::Approx(-slope(2)));
  }
}

}  // namespace heed
