// The exponential function and what is made of it, in float32 against float64.

#include "tests/autograd/tensors.hpp"

namespace heed {
namespace {

/// Values from `low` to `high`, neighbours and uneven steps among them.
std::vector<float> ladder(float low, float high) {
  std::vector<float> values;
  for (float x = low; x < high; x += 1.37e-4F * (1 + std::abs(x))) {
    values.push_back(x);
    values.push_back(std::nextafter(x, high));
  }
  return values;
}

std::vector<double> result(Tensor (*function)(Tensor const&), std::vector<float> const& x) {
  return function(test::vector_of({x.begin(), x.end()}, DType::float32)).to_vector();
}

/// The largest error in units of the last place of the exact value.
template <class Exact>
double worst_ulps(Tensor (*function)(Tensor const&), std::vector<float> const& x, Exact const& exact) {
  auto const found = result(function, x);
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    double const wanted = exact(static_cast<double>(x[i]));
    auto const size = std::abs(static_cast<float>(wanted));
    double const ulp = static_cast<double>(std::nextafter(size, std::numeric_limits<float>::infinity())) - static_cast<double>(size);
    worst = test::worse(worst, std::abs(found[i] - wanted) / ulp);
  }
  return worst;
}

double plain_sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// Softmax of a row and, for dy, its gradient, number by number: first y, then dx.
template <class T>
Tensor plain_softmax(std::vector<double> const& x, std::vector<double> const& dy) {
  std::vector<T> y(x.begin(), x.end()), g(dy.begin(), dy.end());
  T const largest = *std::ranges::max_element(y);
  T sum = 0, inner = 0;
  for (T& v : y) sum += v = std::exp(v - largest);
  for (T& v : y) v /= sum;
  for (std::size_t i = 0; i < y.size(); ++i) inner += y[i] * g[i];
  std::vector<double> found(y.begin(), y.end());
  for (std::size_t i = 0; i < y.size(); ++i) found.push_back(static_cast<double>(y[i] * (g[i] - inner)));
  return test::vector_of(found);
}

}  // namespace

TEST_SUITE("exponential") {
  TEST_CASE("exp: at most twice the half unit in the last place that the best float32 function is off") {
#if defined(__x86_64__) && !defined(__FMA__)
    double const bound = 1.1;  // its argument's reduction rounds once more
#else
    double const bound = 1.0;
#endif
    CHECK(worst_ulps(exp, ladder(-87.3F, 88.3F), [](double x) { return std::exp(x); }) <= bound);
  }

  TEST_CASE("exp: beyond the range of float32, and what is no number") {
    float const infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
    CHECK(result(exp, {88.8F, 100, 1e10F, 1e38F, infinity}) == test::Values(5, double{infinity}));
    CHECK(result(exp, {-104, -1e3F, -1e10F, -1e38F, -infinity}) == test::Values(5, 0));
    CHECK(std::isnan(result(exp, {nan})[0]));
    CHECK(std::isnan(result(exp, {-nan, 1, 2})[0]));
    CHECK(result(exp, {0, -0.0F}) == std::vector<double>{1, 1});
  }

  TEST_CASE("sigmoid, silu and gelu: as near as their formulas in float32 with a correctly rounded exponential") {
    // sigmoid rounds e⁻ˣ (1 ulp of it) and its sum and quotient (half each); gelu's argument rounds four times before that, which an
    // exponential magnifies by its size.
    CHECK(worst_ulps(sigmoid, ladder(-87, 87), plain_sigmoid) <= 2.5);
    CHECK(worst_ulps(silu, ladder(-87, 87), [](double x) { return x * plain_sigmoid(x); }) <= 3.0);
    auto const gelu_of = [](double x) { return x * plain_sigmoid(2 * std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)); };
    auto const x = ladder(-5, 8);
    auto const ours = result(gelu, x);
    double worst = 0, plain = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      float const v = x[i], u = 1.5957691216F * (v + 0.044715F * v * v * v);
      double const wanted = gelu_of(static_cast<double>(v)), size = std::abs(wanted) + 1e-30;
      worst = test::worse(worst, std::abs(ours[i] - wanted) / size);
      plain = std::max(plain, std::abs(static_cast<double>(v / (1 + std::exp(-u))) - wanted) / size);
    }
    CHECK(worst <= 2 * plain);
  }

  TEST_CASE("softmax and its gradient: rows of every length, in registers or not") {
    for (DType const dtype : {DType::float32, DType::float64}) {
      INFO("dtype ", to_string(dtype));
      double worst = 0, plain = 0;
      for (Index n = 1; n <= 80; ++n) {
        INFO("length ", n);
        Tensor const x = (test::normal({3, n}, "x", dtype) * 4).detach().set_requires_grad(), dy = test::normal({3, n}, "dy", dtype);
        Tensor const y = softmax(x);
        sum(y * dy).backward();
        for (Index row = 0; row < 3; ++row) {
          auto const of = [&](Tensor const& t) { return t.detach().rows(row, 1).to_vector(); };
          Tensor const found = concatenate({test::vector_of(of(y)), test::vector_of(of(x.grad()))}, 0);
          Tensor const exact = plain_softmax<long double>(of(x), of(dy));
          worst = test::worse(worst, test::absolute_difference(found, exact));
          auto const in_dtype = dtype == DType::float32 ? plain_softmax<float> : plain_softmax<double>;
          plain = std::max(plain, test::absolute_difference(in_dtype(of(x), of(dy)), exact));
        }
      }
      REQUIRE(std::isfinite(plain));
      CHECK(worst <= 2 * plain);
    }
  }
}

}  // namespace heed
