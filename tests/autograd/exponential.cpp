// The exponential function and what is made of it, in float32 against float64.

#include "autograd/graph.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/ops/softmax.hpp"
#include "autograd/random.hpp"
#include "autograd/tensor.hpp"
#include "tests/difference.hpp"
#include "tests/test.hpp"

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
  return function(Tensor::of({x.begin(), x.end()}, {static_cast<std::int64_t>(x.size())}, DType::float32)).to_vector();
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
    REQUIRE(std::isfinite(found[i]));  // max() would pass over a NaN
    worst = std::max(worst, std::abs(found[i] - wanted) / ulp);
  }
  return worst;
}

double plain_sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// Softmax of a row and, for dy, its gradient, number by number: first y, then dx.
template <class T>
std::vector<double> plain_softmax(std::vector<double> const& x, std::vector<double> const& dy) {
  std::vector<T> y(x.begin(), x.end()), g(dy.begin(), dy.end());
  T const most = *std::ranges::max_element(y);
  T sum = 0, inner = 0;
  for (T& v : y) sum += v = std::exp(v - most);
  for (T& v : y) v /= sum;
  for (std::size_t i = 0; i < y.size(); ++i) inner += y[i] * g[i];
  std::vector<double> found(y.begin(), y.end());
  for (std::size_t i = 0; i < y.size(); ++i) found.push_back(static_cast<double>(y[i] * (g[i] - inner)));
  return found;
}

double furthest(std::vector<double> const& a, std::vector<double> const& b) {
  REQUIRE(a.size() == b.size());
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    REQUIRE(std::isfinite(a[i]));
    most = std::max(most, std::abs(a[i] - b[i]));
  }
  return most;
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
    auto const high = result(exp, {88.8F, 100, 1e10F, 1e38F, infinity});
    for (double const y : high) CHECK(y == std::numeric_limits<double>::infinity());
    auto const low = result(exp, {-104, -1e3F, -1e10F, -1e38F, -infinity});
    for (double const y : low) CHECK(y == 0);
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
      for (std::int64_t n = 1; n <= 80; ++n) {
        INFO("length ", n);
        Tensor x = (Tensor::normal({3, n}, Stream(1, "x"), dtype) * 4).detach();
        Tensor const dy = Tensor::normal({3, n}, Stream(1, "dy"), dtype);
        x.set_requires_grad(true);
        Tensor const y = softmax(x);
        sum(y * dy).backward();
        for (std::int64_t row = 0; row < 3; ++row) {
          auto const of = [&](Tensor const& t) { return t.detach().rows(row, 1).to_vector(); };
          auto found = of(y);
          auto const dx = of(x.grad());
          found.insert(found.end(), dx.begin(), dx.end());
          auto const exact = plain_softmax<long double>(of(x), of(dy));
          worst = std::max(worst, furthest(found, exact));
          plain = std::max(
              plain, furthest(dtype == DType::float32 ? plain_softmax<float>(of(x), of(dy)) : plain_softmax<double>(of(x), of(dy)), exact));
        }
      }
      CHECK(worst <= 2 * plain);
    }
  }
}

}  // namespace heed
