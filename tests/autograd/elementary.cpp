// Every elementary function against the C library, over all exponents of both types; and no NaN where there is a number.

#include "tests/autograd/tensors.hpp"

namespace heed {
namespace {

using Wide = long double;
using Exact = std::function<Wide(Wide)>;

/// A function, what it should be, and the largest errors that its documentation allows, in units of the last place of the exact result. An
/// error below the least normal number counts as none where `flushes`: sums and products of parts that are 0 there.
struct Function {
  std::string name;
  Tensor (*of)(Tensor const&);
  Exact exact;
  double float32, float64;
  bool flushes = false;
  std::function<bool(double)> domain = [](double) { return true; };
};

Wide sigmoid_of(Wide x) { return 1 / (1 + std::exp(-x)); }
bool positive(double x) { return x > 0; }

std::vector<Function> functions() {
  return {
      {"exp", exp, [](Wide x) { return std::exp(x); }, 1.1, 3},
      {"expm1", expm1, [](Wide x) { return std::expm1(x); }, 2, 3},
      {"log", log, [](Wide x) { return std::log(x); }, 1, 1, false, positive},
      {"log1p", log1p, [](Wide x) { return std::log1p(x); }, 1, 1, false, [](double x) { return x > -1; }},
      {"sqrt", sqrt, [](Wide x) { return std::sqrt(x); }, 0.51, 0.51, false, [](double x) { return x >= 0; }},
      {"rsqrt", rsqrt, [](Wide x) { return 1 / std::sqrt(x); }, 1.5, 1.5, false, positive},
      {"reciprocal", reciprocal, [](Wide x) { return 1 / x; }, 0.51, 0.51, false, [](double x) { return x != 0; }},
      {"sin", sin, [](Wide x) { return std::sin(x); }, 2, 2},
      {"cos", cos, [](Wide x) { return std::cos(x); }, 2, 2},
      {"tanh", tanh, [](Wide x) { return std::tanh(x); }, 2, 2},
      {"erf", erf, [](Wide x) { return std::erf(x); }, 3, 3},
      {"sigmoid", sigmoid, sigmoid_of, 3, 3, true},
      {"softplus", softplus, [](Wide x) { return (x > 0 ? x : 0) + std::log1p(std::exp(-std::abs(x))); }, 4, 4, true},
      {"pow 2.5", [](Tensor const& x) { return pow(x, 2.5); }, [](Wide x) { return std::pow(x, Wide(2.5)); }, 1, 1, false, positive},
      {"pow -0.25", [](Tensor const& x) { return pow(x, -0.25); }, [](Wide x) { return std::pow(x, Wide(-0.25)); }, 1, 1, false, positive},
      {"pow 3", [](Tensor const& x) { return pow(x, 3); }, [](Wide x) { return x * x * x; }, 2, 2, true},
  };
}

/// Numbers of f's domain: of every exponent and both signs, subnormal ones, 0 and the largest among them.
test::Values all_exponents(Function const& f, DType dtype) {
  bool const single = dtype == DType::float32;
  int const min_exponent = single ? -149 : -1074, max_exponent = single ? 127 : 1023, digits = single ? 24 : 53;
  Stream const stream(7, "mantissas");
  test::Values x{0.0};
  std::uint64_t draw = 0;
  for (int exponent = min_exponent; exponent <= max_exponent; ++exponent) {
    int const bits = std::min(digits - 1, exponent - min_exponent);  // behind the point
    bool const usual = exponent > -12 && exponent < 12;              // where functions are not just their first term
    for (int k = 0; k < (usual ? 400 : 12); ++k) {
      double const u = k == 0 ? 0.0 : k == 1 ? 1 - std::ldexp(1, -53) : stream.uniform(draw++);
      double const value = std::ldexp(1 + std::ldexp(std::floor(u * std::ldexp(1, bits)), -bits), exponent);
      if (!std::isfinite(value)) continue;
      x.push_back(value);
      x.push_back(-value);
    }
  }
  for (double const edge : {88.0, 88.4, 88.6, 88.72, 88.73, 89.0, 103.9, 104.0, 700.0, 708.3, 708.5, 709.7, 709.8, 745.1, 746.0})
    for (double const sign : {1, -1}) x.push_back(single ? static_cast<double>(static_cast<float>(sign * edge)) : sign * edge);
  std::erase_if(x, [&](double v) { return !f.domain(v); });
  return x;
}

template <class T>
double ulps(double found, Wide wanted, bool flushes) {
  auto const nearest = static_cast<T>(wanted);
  if (std::isnan(found) || std::isinf(nearest) || std::isinf(found)) return static_cast<T>(found) == nearest ? 0 : 1e9;
  Wide const error = std::abs(static_cast<Wide>(found) - wanted), min_normal = std::numeric_limits<T>::min();
  if (flushes && error <= min_normal) return 0;
  int exponent = 0;
  (void)std::frexp(std::max(std::abs(wanted), min_normal), &exponent);
  return static_cast<double>(std::ldexp(error, std::numeric_limits<T>::digits - exponent));
}

template <class T>
double worst(Function const& f, DType dtype, double& worst_x) {
  auto const x = all_exponents(f, dtype), y = f.of(test::vector_of(x, dtype)).to_vector();
  double largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    double const error = ulps<T>(y[i], f.exact(static_cast<Wide>(x[i])), f.flushes);
    if (!(error <= largest)) largest = error, worst_x = x[i];
  }
  return largest;
}

std::vector<test::Values> with_derivatives(Function const& f, test::Values const& x, DType dtype) {
  Tensor const at = test::leaf(x, dtype), y = f.of(at), ones = Tensor::ones(y.shape(), dtype);
  Tensor const first = grad({y}, {at}, {ones}, true)[0];
  Tensor const second = first.requires_grad() ? grad({first}, {at}, {ones})[0] : Tensor::zeros(y.shape(), dtype);
  return {y.to_vector(), first.to_vector(), second.to_vector()};
}

}  // namespace

TEST_SUITE("elementary") {
  TEST_CASE("errors over all exponents are within what is documented") {
    // Where long double is double the reference itself is half a unit off.
    double const of_reference = std::numeric_limits<Wide>::digits > 53 ? 0 : 0.5;
    for (Function const& f : functions()) {
      double at32 = 0, at64 = 0;
      double const e32 = worst<float>(f, DType::float32, at32), e64 = worst<double>(f, DType::float64, at64);
      fmt::print("elementary: {:<10} float32 {:5.2f} ulp (x = {:.9g}), float64 {:5.2f} ulp (x = {:.17g})\n", f.name, e32, at32, e64, at64);
      CHECK_MESSAGE(e32 <= f.float32, f.name, " in float32 at ", at32);
      CHECK_MESSAGE(e64 <= f.float64 + of_reference, f.name, " in float64 at ", at64);
    }
  }

  TEST_CASE("no NaN, neither in the value nor in its first and second derivative, for any finite number") {
    std::vector<Function> all = functions();
    for (auto const& [name, of] : std::vector<std::pair<std::string, Tensor (*)(Tensor const&)>>{
             {"gelu", gelu}, {"gelu_exact", gelu_exact}, {"silu", silu}, {"relu", relu}, {"abs", abs}, {"negate", negate}})
      all.push_back({name, of, {}, 0, 0});
    for (Function const& f : all)
      for (DType const dtype : {DType::float32, DType::float64}) {
        auto const x = all_exponents(f, dtype);
        auto const found = with_derivatives(f, x, dtype);
        for (std::size_t order = 0; order < found.size(); ++order) {
          auto const nan = std::ranges::find_if(found[order], [](double v) { return std::isnan(v); });
          CHECK_MESSAGE(nan == found[order].end(), f.name, " in ", to_string(dtype), ", derivative ", order, ", at ",
                        heed::at(x, nan == found[order].end() ? 0 : nan - found[order].begin()));
        }
      }
  }

  TEST_CASE("the ends of gelu are 0 and x, with slopes 0 and 1") {
    for (auto const of : {gelu, gelu_exact, silu})
      for (DType const dtype : {DType::float32, DType::float64})
        for (double const x : {1e3, 1e12, 3e13, 1e19, 1e38}) {
          auto const right = with_derivatives({"", of, {}, 0, 0}, {x, -x}, dtype);
          CHECK(right[0][0] == doctest::Approx(x));
          CHECK(right[0][1] == 0);
          CHECK(right[1] == test::Values{1, 0});
          CHECK(right[2] == test::Values{0, 0});
        }
  }

  TEST_CASE("a quotient's gradients where it and they are within the range") {
    for (DType const dtype : {DType::float32, DType::float64}) {
      int const max_exponent = dtype == DType::float32 ? 120 : 1010;
      Stream const stream(11, "quotients");
      test::Values x, y, dy;
      for (std::uint64_t k = 0; x.size() < 4000; ++k) {
        auto const draw = [&](std::uint64_t i) { return static_cast<int>((2 * stream.uniform(4 * k + i) - 1) * max_exponent); };
        int const a = draw(0), b = draw(1), d = draw(2);
        auto const within = [&](int exponent) { return std::abs(exponent) < max_exponent; };
        if (!within(a - b) || !within(d - b) || !within(d + a - 2 * b)) continue;
        double const m = 1 + std::floor(stream.uniform(4 * k + 3) * 1024) / 1024;
        x.push_back(std::ldexp(m, a));
        y.push_back(std::ldexp(2 - m / 2, b));
        dy.push_back(std::ldexp(1.25, d));
      }
      Tensor const a = test::leaf(x, dtype), b = test::leaf(y, dtype);
      auto const found = grad({a / b}, std::vector{a, b}, {test::vector_of(dy, dtype)});
      double const unit = dtype == DType::float32 ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
      for (std::size_t i = 0; i < x.size(); ++i) {
        auto const k = static_cast<Index>(i);
        REQUIRE(std::abs(found[0].at(k) / (dy[i] / y[i]) - 1) < 4 * unit);
        REQUIRE(std::abs(found[1].at(k) / -(dy[i] / y[i] * (x[i] / y[i])) - 1) < 4 * unit);
      }
    }
  }

  TEST_CASE("means, norms and quotients by numbers whose middle leaves the range") {
    for (DType const dtype : {DType::float32, DType::float64}) {
      double const large = dtype == DType::float32 ? 3e38 : 1.7e308, root = std::sqrt(large);
      auto const near = [&](Tensor const& found, double expected) {
        CAPTURE(expected);
        CHECK(found.item() / expected == doctest::Approx(1));
      };
      near(mean(Tensor::full({8}, large, dtype)), large);
      near(variance(test::vector_of({0, 1.2 * root, 0, 0, 0, 0, 0, 0}, dtype)), 1.44 * 7 / 64 * large);
      Tensor const weight = Tensor::ones({3}, dtype), row = test::vector_of({-large / 2, 0, large / 2}, dtype);
      for (Tensor const& y : {layer_norm(row, weight, {}), rms_norm(row, weight)})
        for (Index i = 0; auto const expected : {-std::sqrt(1.5), 0.0, std::sqrt(1.5)}) CHECK(y.at(i++) == doctest::Approx(expected));
      near(Tensor::scalar(large / 2, dtype) / large, 0.5);
      near(1 / large / Tensor::scalar(1 / large, dtype), 1);
      Tensor const x = Tensor::scalar(large / 4, dtype).set_requires_grad();
      near(grad(x / large, x) * (large / 4), 0.25);
    }
  }

  TEST_CASE("powers at the edges, and what they have for derivatives there") {
    Tensor const a = test::leaf({0, 0, 0, 2, -2, 1e-300, 3}), b = test::leaf({0, 1, 2.5, 0, 3, 0.5, 1}), y = pow(a, b);
    for (Index i = 0; auto const value : {1.0, 0.0, 0.0, 1.0, -8.0, 1e-150, 3.0}) CHECK(y.at(i++) == doctest::Approx(value));
    auto const g = grad({y}, std::vector{a, b}, {Tensor::ones({7}, DType::float64)});
    for (Index i = 0; auto const slope : {0.0, 1.0, 0.0, 0.0, 12.0, 0.5e150, 1.0}) CHECK(g[0].at(i++) == doctest::Approx(slope));
    CHECK(g[1].at(1) == 0);
    CHECK(g[1].at(2) == 0);
    CHECK(std::isnan(g[1].at(4)));  // a negative number's logarithm
  }
}

}  // namespace heed
