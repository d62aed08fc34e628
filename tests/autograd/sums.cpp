// Long sums in float32: rounding errors grow with the logarithm of their length, whichever operation adds up.

#include "tests/autograd/tensors.hpp"
#include "tests/refusal.hpp"

namespace heed {
namespace {

constexpr double tolerance = 1e-6;  // eight roundings of float32

/// The largest relative error of x's elements against one number.
double error_of(Tensor const& x, double expected) {
  double worst = 0;
  for (double const value : x.to_vector()) worst = std::isfinite(value) ? std::max(worst, std::abs(value / expected - 1)) : 1;
  return worst;
}

double const tenth = static_cast<double>(0.1F);
Tensor tenths(Shape const& shape) { return Tensor::full(shape, 0.1, DType::float32); }

}  // namespace

TEST_SUITE("sums") {
  TEST_CASE("a count beyond 2²⁴ is right in float32") {
    for (Shape const& shape : {Shape{20'000'000, 2}, Shape{2, 20'000'000}, Shape{40'000'000}}) {
      Index const axis = shape.rank() == 2 && shape[0] == 2 ? 1 : 0;
      CHECK(error_of(sum(Tensor::ones(shape, DType::float32), {axis}), static_cast<double>(shape[axis])) == 0);
    }
  }

  TEST_CASE("reductions over rows, over columns and over what lies between") {
    Index const n = 1'000'000;
    for (auto const& [shape, axis] : std::vector<std::pair<Shape, Index>>{
             {{n}, 0}, {{3, n}, 1}, {{n, 1}, 0}, {{n, 3}, 0}, {{n, 67}, 0}, {{2, n, 2}, 1}, {{100'003, 2}, 0}, {{2, 4099}, 1}}) {
      auto const of = to_string(shape);
      CAPTURE(of);
      Tensor const x = tenths(shape);
      auto const count = static_cast<double>(shape[axis]);
      CHECK(error_of(sum(x, {axis}), count * tenth) < tolerance);
      CHECK(error_of(mean(x, {axis}), tenth) < tolerance);
      CHECK(error_of(sum_of_squares(x, {axis}), count * tenth * tenth) < tolerance);
      CHECK(error_of(logsumexp(x, {axis}), std::log(count) + tenth) < tolerance);
    }
    Tensor const first = cumsum(tenths({n, 3}), 0);
    CHECK(error_of(first.rows(n - 1, 1), n * tenth) < tolerance);
    CHECK(error_of(first.rows(123'455, 1), 123'456 * tenth) < tolerance);
    CHECK(std::abs(cumsum(tenths({n}), 0, true).at(0) / (n * tenth) - 1) < tolerance);
  }

  TEST_CASE("an axis that is named twice is refused by every reduction") {
    Tensor const x = test::normal({2, 3, 4}, "x");
    using Reduction = Tensor (*)(Tensor const&, Axes const&, bool);
    Reduction const of_variance = [](Tensor const& y, Axes const& axes, bool keep) { return variance(y, axes, keep); };
    std::map<std::string, Reduction> const reductions{
        {"sum", sum}, {"sum_of_squares", sum_of_squares}, {"mean", mean},           {"max", max},
        {"min", min}, {"logsumexp", logsumexp},           {"variance", of_variance}};
    for (auto const& each : reductions) {
      CAPTURE(each.first);
      Reduction const reduction = each.second;
      for (bool const keep : {false, true}) {
        for (Axes const& axes : {Axes{0, 0}, Axes{1, -2}, Axes{0, 2, 1, -1}})
          CHECK(test::refusal([&] { reduction(x, axes, keep); }).ends_with("of [2, 3, 4] is named twice"));
        CHECK(reduction(x, {2, -3}, keep).elements() == 3);
      }
    }
  }

  TEST_CASE("a variance of values that are far from 0") {
    Index const n = 1 << 20;  // half of them 3, half 5
    Tensor const x = where(less(Tensor::arange(n, DType::float32), Tensor::scalar(n / 2, DType::float32)),
                           Tensor::full({n}, 3, DType::float32), Tensor::full({n}, 5, DType::float32));
    CHECK(error_of(variance(x, {}, false, 0), 1) < tolerance);
    CHECK(error_of(variance(x.viewed({n, 1}), {0}, false, 0), 1) < tolerance);
  }

  TEST_CASE("gradients of what was broadcast") {
    Index const n = 1 << 17;
    Tensor const seed = tenths({n, 5});
    auto const gradient = [&](Shape const& shape, std::function<Tensor(Tensor const&)> const& f) {
      Tensor const x = Tensor::ones(shape, DType::float32).set_requires_grad();
      return grad({f(x)}, {x}, {seed})[0];
    };
    Tensor const rows = Tensor::ones({n, 5}, DType::float32), nothing = Tensor::zeros({5, 5}, DType::float32);
    CHECK(error_of(gradient({5}, [&](Tensor const& b) { return rows + b; }), n * tenth) < tolerance);
    CHECK(error_of(gradient({1, 1}, [&](Tensor const& b) { return rows * b; }), 5 * n * tenth) < tolerance);
    CHECK(error_of(gradient({5}, [&](Tensor const& b) { return linear(rows, nothing, b); }), n * tenth) < tolerance);
    CHECK(error_of(gradient({5}, [&](Tensor const& b) { return layer_norm(rows, Tensor::ones({5}, DType::float32), b); }), n * tenth) <
          tolerance);
    Tensor const same_rows = expand(test::vector_of({-std::sqrt(1.5), 0, std::sqrt(1.5)}, DType::float32), {n, 3});
    Tensor const weight = Tensor::ones({3}, DType::float32).set_requires_grad();
    Tensor const dweight = grad({rms_norm(same_rows, weight, 0)}, {weight}, {tenths({n, 3})})[0];
    CHECK(std::abs(dweight.at(2) / (n * tenth * std::sqrt(1.5)) - 1) < tolerance);
  }

  TEST_CASE("rows of one token, and elements of one place") {
    Index const n = 1'000'000;
    Tensor const tokens = Tensor::full({n}, 1, DType::int64);
    CHECK(error_of(embedding_transposed(tenths({n, 3}), tokens, 3).rows(1, 1), n * tenth) < tolerance);
    CHECK(error_of(scatter_add({n, 2}, 0, Tensor::full({n, 2}, 7, DType::int64), tenths({n, 2})).rows(7, 1), n * tenth) < tolerance);
    double const infinity = std::numeric_limits<double>::infinity();
    CHECK(scatter_add({2}, 0, Tensor::zeros({300}, DType::int64), Tensor::full({300}, infinity, DType::float32)).at(0) == infinity);
  }

  TEST_CASE("zeros change no bit, wherever they are put") {
    Index const n = 5000;
    Stream const stream(9, "zeros");
    Tensor x = Tensor::normal({n, 3}, stream, DType::float32);
    Tensor tokens = Tensor::zeros({n}, DType::int64), others = Tensor::zeros({n}, DType::int64);
    for (Index i = 0; i < n; ++i) {
      bool const empty = stream.uniform(static_cast<std::uint64_t>(n + i)) < 0.5;
      if (empty) std::fill_n(x.mutable_data<float>().begin() + 3 * i, 3, 0.0F);
      at(tokens.mutable_data<std::int64_t>(), i) = i % 2;
      at(others.mutable_data<std::int64_t>(), i) = empty ? 2 : i % 2;
    }
    auto const first_two = [](Tensor const& table) { return table.rows(0, 2).to_vector(); };
    CHECK(first_two(embedding_transposed(x, tokens, 3)) == first_two(embedding_transposed(x, others, 3)));
    auto const columns = [&](Tensor const& index) { return expand(reshape(index, {-1, 1}), {n, 3}); };
    CHECK(first_two(scatter_add({3, 3}, 0, columns(tokens), x)) == first_two(scatter_add({3, 3}, 0, columns(others), x)));
    Tensor const more = concatenate({x, Tensor::zeros({777, 3}, DType::float32)}, 0);
    CHECK(sum(x, {0}).to_vector() == sum(more, {0}).to_vector());
  }

  TEST_CASE("the same bits on any number of threads") {
    Index const n = 70'001;
    Tensor const x = test::normal({n, 7}, "x", DType::float32), tokens = Tensor::full({n}, 2, DType::int64);
    test::check_threads({1, 2, 3}, [&] {
      std::vector<Tensor> results{sum(x), embedding_transposed(x, tokens, 4)};
      for (Index const axis : {0, 1})
        for (Tensor const& result : {sum(x, {axis}), cumsum(x, axis), logsumexp(x, {axis})}) results.push_back(result);
      return results;
    });
  }
}

}  // namespace heed
