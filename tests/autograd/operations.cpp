// The generic suite: all samples (tests/autograd/samples) of all operations are held to the same questions. Are the first and second
// derivatives those of finite differences? Does float32 agree with float64, the kernel with the plain composition, one thread with two?
// Do wrong calls fail with the promised words? Then the edges that a random draw never meets.

#include "autograd/ops/operations.hpp"

#include <regex>

#include "autograd/ops/info.hpp"
#include "autograd/registry.hpp"
#include "tests/autograd/samples/operation_check.hpp"
#include "tests/autograd/tensors.hpp"
#include "tests/refusal.hpp"

using namespace heed;
using test::all_finite, test::check_agree, test::check_jvp, test::check_ok, test::same_bits, test::value_and_gradients;
using test::OperationCheck, test::Sample, test::SampleInput, test::Values, test::vector_of;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

/// With sanitizers and in an emulator, where every draw costs a minute: addresses and instructions do not depend on the numbers.
#if defined(HEED_SANITIZED) || defined(HEED_EMULATED)
constexpr bool slow = true;
#else
constexpr bool slow = false;
#endif
/// Elements of an input that a draw checks: in the first some of every block and lane, then as many as find what depends on the numbers.
constexpr Index max_of(int draw) { return slow ? 4 : draw == 0 ? 64 : 16; }

/// The inputs of one draw of a sample, rounded to float32 so that both precisions start from the same numbers.
std::vector<Tensor> drawn(Sample const& sample, Stream const& stream) {
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < sample.inputs.size(); ++i) {
    SampleInput const& input = sample.inputs[i];
    inputs.push_back(Tensor::uniform(input.shape, stream.child(i), DType::float32, input.range.low, input.range.high).to(DType::float64));
  }
  return inputs;
}

/// Calls test(operation, sample, inputs, draw) for every draw of every sample, inside a message that says which.
template <class Test>
void for_each_draw(int draws, Test const& test) {
  if (slow) draws = 1;
  for (OperationCheck const& operation : Registry<OperationCheck>::all())
    for (std::size_t s = 0; s < operation.samples.size(); ++s)
      for (int draw = 0; draw < draws; ++draw) {
        Sample const& sample = operation.samples[s];
        std::vector<Tensor> const inputs = drawn(sample, Stream(static_cast<std::uint64_t>(draw), operation.name).child(s));
        std::string shapes;
        for (Tensor const& input : inputs) shapes += " " + to_string(input.shape());
        INFO(operation.name, ", sample ", s, " with", shapes, ", draw ", draw);
        try {
          test(operation, sample, inputs, draw);
        } catch (std::exception const& error) {
          FAIL_CHECK("throws: ", error.what());
        }
      }
}

/// The value, and where the operation has derivatives the gradients.
std::vector<Tensor> results_of(OperationCheck const& operation, TensorFunction const& f, std::vector<Tensor> const& at, DType dtype) {
  if (operation.differentiable) return value_and_gradients(f, at, dtype);
  return {f(test::leaves(at, dtype))};
}

/// The gradient of a projection of f by one input, as a function of all.
TensorFunction gradient_of(TensorFunction const& f, std::size_t input) {
  return [=](std::vector<Tensor> const& at) {
    Tensor const y = f(at);
    return grad({y}, {at[input]}, test::projection({y}), true).front();
  };
}

/// The gradient of Σ f(x) at x.
Values slope(std::function<Tensor(Tensor const&)> const& f, Tensor x) {
  x.set_requires_grad();
  return grad(sum(f(x)), x).to_vector();
}

}  // namespace

TEST_SUITE("operations") {
  TEST_CASE("every operation of the headers is listed") {
    std::regex const declaration(R"(^(?:Tensor|std::vector<Tensor>) (\w+)\()");
    std::set<std::string> declared;
    std::regex const family(R"(^#include "(autograd/[a-z]+/\w+\.hpp)\")");
    std::ifstream all("autograd/ops/operations.hpp");
    for (std::string include; std::getline(all, include);) {
      std::smatch path;
      if (!std::regex_search(include, path, family)) continue;
      std::ifstream header(path[1]);
      for (std::string line; std::getline(header, line);) {
        if (std::smatch match; std::regex_search(line, match, declaration)) declared.insert(match[1]);
      }
    }
    REQUIRE(declared.size() > 60);
    for (std::string const& name : declared) {
      bool const listed = std::ranges::any_of(
          operations(), [&](OperationInfo const& operation) { return operation.name == name || operation.name.starts_with(name + " "); });
      CHECK_MESSAGE(listed, name, " is not in autograd/ops/info.cpp");
    }
  }

  TEST_CASE("every operation that is listed has a formula and a check, and every check samples") {
    std::set<std::string> listed, checked;
    for (OperationInfo const& operation : operations()) {
      INFO(operation.name);
      CHECK_FALSE(operation.formula.empty());
      listed.emplace(operation.name);
    }
    for (OperationCheck const& check : Registry<OperationCheck>::all()) {
      INFO(check.name);
      CHECK_FALSE(check.samples.empty());
      checked.insert(check.name.substr(0, check.name.find(" (")));  // "abs (negative)" is a second check of abs
    }
    for (std::string const& name : listed) CHECK_MESSAGE(checked.contains(name), name, " has no check in tests/autograd/samples");
    for (std::string const& name : checked) CHECK_MESSAGE(listed.contains(name), name, " is not in autograd/ops/info.cpp");
  }

  TEST_CASE("first and second derivatives, and those along a direction, are those of finite differences") {
    for_each_draw(2, [](OperationCheck const& operation, Sample const& sample, std::vector<Tensor> const& inputs, int draw) {
      if (!operation.differentiable) return;
      check_ok(gradcheck(sample.call, inputs, 1e-7, 1e-3, max_of(draw)));
      check_ok(gradgradcheck(sample.call, inputs, 1e-6, 1e-3, max_of(draw)));
      if (draw == 0) check_jvp(sample.call, inputs);
    });
  }

  TEST_CASE("second derivatives by kernels are those of the plain composition") {
    for_each_draw(1, [](OperationCheck const& operation, Sample const& sample, std::vector<Tensor> const& inputs, int) {
      if (!operation.differentiable || !sample.reference) return;
      for (auto const& each : {std::pair{DType::float64, 1e-11}, std::pair{DType::float32, 1e-4}}) {
        DType const dtype = each.first;
        for (std::size_t i = 0; i < inputs.size(); ++i) {
          INFO(to_string(dtype), ", of the gradient of input ", i);
          check_agree(value_and_gradients(gradient_of(sample.call, i), inputs, dtype),
                      value_and_gradients(gradient_of(sample.reference, i), inputs, dtype), each.second);
        }
      }
    });
  }

  TEST_CASE("third derivatives of what has kernels for the second") {
    for (OperationCheck const& operation : Registry<OperationCheck>::all()) {
      if (!operation.name.starts_with("pair_sums") && operation.name != "fused_attention") continue;
      INFO(operation.name);
      Sample const& sample = operation.samples.front();
      std::vector<Tensor> const inputs = drawn(sample, Stream(0, "third"));
      check_ok(gradgradcheck(gradient_of(sample.call, 0), inputs, 1e-5, 1e-3, 4));
    }
  }

  TEST_CASE("what is not differentiable has no gradient") {
    for_each_draw(1, [](OperationCheck const& operation, Sample const& sample, std::vector<Tensor> inputs, int) {
      if (operation.differentiable) return;
      for (Tensor& input : inputs) input.set_requires_grad();
      CHECK_FALSE(sample.call(inputs).requires_grad());
    });
  }

  TEST_CASE("float32 agrees with float64") {
    for_each_draw(3, [](OperationCheck const& operation, Sample const& sample, std::vector<Tensor> const& inputs, int) {
      auto const single = results_of(operation, sample.call, inputs, DType::float32);
      check_agree(single, results_of(operation, sample.call, inputs, DType::float64), 2e-6);
      for (std::size_t i = 1; i < single.size(); ++i) CHECK(single[i].dtype() == DType::float32);
    });
  }

  TEST_CASE("kernels agree with their references") {
    for_each_draw(3, [](OperationCheck const& operation, Sample const& sample, std::vector<Tensor> const& inputs, int) {
      if (!sample.reference) return;
      for (auto const& each : {std::pair{DType::float64, 1e-12}, std::pair{DType::float32, 1e-5}}) {
        DType const dtype = each.first;
        INFO(to_string(dtype));
        check_agree(results_of(operation, sample.call, inputs, dtype), results_of(operation, sample.reference, inputs, dtype), each.second);
      }
    });
  }

  TEST_CASE("backward leaves in the leaves what grad returns") {
    for_each_draw(1, [](OperationCheck const& operation, Sample const& sample, std::vector<Tensor> inputs, int) {
      if (!operation.differentiable) return;
      auto const expected = value_and_gradients(sample.call, inputs);
      for (Tensor& input : inputs) input.set_requires_grad();
      Tensor const y = sample.call(inputs);
      backward(y, test::projection({y}).front());
      for (std::size_t i = 0; i < inputs.size(); ++i) CHECK(same_bits(inputs[i].grad(), expected[i + 1]));
    });
  }

  TEST_CASE("wrong calls fail with the words promised") {
    for (OperationCheck const& operation : Registry<OperationCheck>::all())
      for (std::size_t e = 0; e < operation.errors.size(); ++e) {
        INFO(operation.name, ", error case ", e);
        std::string const message = test::refusal(operation.errors[e].call), &expected = operation.errors[e].message;
        CHECK_MESSAGE(message.find(expected) != std::string::npos, message, " — expected: ", expected);
        CHECK(message.find('\n') == std::string::npos);
        std::string function = operation.name.substr(0, operation.name.find(' '));
        if (function.starts_with("fused_")) function.erase(0, 6);  // the one of three tensors, attention(), says the same
        CHECK_MESSAGE(message.starts_with(function + ":"), message, " — speaks of another function than ", function);
      }
  }

  TEST_CASE("one thread and two give the same bits") {
    Stream const stream(5, "threads");
    // Large enough that the pool wakes; sizes are no multiples of anything.
    Tensor const x = Tensor::normal({37, 131, 67}, stream, DType::float32);
    Tensor const w = Tensor::normal({67, 53}, stream.child("w"), DType::float32);
    Tensor const row = Tensor::normal({67}, stream.child("row"), DType::float32);
    Tensor const images = Tensor::normal({5, 3, 41, 39}, stream.child("images"), DType::float32);
    Tensor const kernels = Tensor::normal({7, 3, 3, 3}, stream.child("kernels"), DType::float32);
    Tensor const indices = Tensor::uniform({37, 131}, stream.child("places"), DType::float64, 0, 11).to(DType::int64);
    Tensor const columns = Tensor::uniform({37, 131, 67}, stream.child("columns"), DType::float64, 0, 67).to(DType::int64);
    Tensor const table = Tensor::normal({11, 67}, stream.child("table"), DType::float32);

    auto const check = [](char const* name, std::function<Tensor()> const& call) {
      INFO(name);
      test::check_threads({1, 2}, [&] { return std::vector{call()}; });
    };
    check("tanh", [&] { return tanh(x); });
    check("multiply", [&] { return x * row; });
    check("sum of an inner axis", [&] { return sum(x, {1}); });
    check("max", [&] { return max(x, {0}); });
    check("cumsum", [&] { return cumsum(x, 1); });
    check("softmax", [&] { return softmax(x); });
    check("layer_norm", [&] { return layer_norm(x, row, row); });
    check("matmul", [&] { return matmul(x, w); });
    check("permute", [&] { return permute(x, {2, 0, 1}); });
    check("permute of the middle", [&] { return permute(x, {1, 0, 2}); });
    check("slice", [&] { return slice(x, 1, 130, 3, -3); });
    check("concatenate", [&] { return concatenate({x, x * 2}, 1); });
    check("expand", [&] { return expand(x, {2, 37, 131, 67}); });
    check("tril", [&] { return tril(x, 5); });
    check("gather", [&] { return gather(x, 2, columns); });
    check("scatter_add", [&] { return scatter_add({37, 131, 70}, 2, columns, x); });
    check("scatter_add over rows", [&] { return scatter_add({37, 200, 67}, 1, columns, x); });
    check("embedding", [&] { return embedding(table, indices); });
    check("conv2d", [&] { return conv2d(images, kernels, {}, 1, 1); });
    check("gradient of conv2d", [&] { return vector_of(slope([&](Tensor const& v) { return conv2d(v, kernels, {}, 2, 1); }, images)); });
    check("cross_entropy", [&] { return cross_entropy(x, indices, 0.1); });
    check("dropout", [&] { return dropout(x, 0.3, stream); });
  }

  TEST_CASE("the layout of moved elements") {
    // [b, t, h, d] holds its own coordinates as a number.
    Tensor const x = Tensor::arange(2 * 3 * 4 * 5, DType::int64).viewed({2, 3, 4, 5});
    SUBCASE("permute, in every order") {
      std::vector<Index> axes{0, 1, 2, 3};
      do {
        Tensor const y = permute(x, axes);
        std::array<Index, 4> const stride{60, 20, 5, 1};
        for (Index element = 0; element < y.elements(); ++element) {
          Index wanted = 0, rest = element;
          for (Index axis = 3; axis >= 0; rest /= y.size(axis--)) wanted += rest % y.size(axis) * at(stride, at(axes, axis));
          REQUIRE(y.at(element) == static_cast<double>(wanted));
        }
      } while (std::ranges::next_permutation(axes).found);
    }
    SUBCASE("what keeps its order shares the array") {
      CHECK(reshape(x, {6, -1}).shares_array_with(x));
      CHECK(permute(reshape(x, {2, 1, 60}), {1, 0, 2}).shares_array_with(x));
      CHECK(slice(x, 0, 0, 1).shares_array_with(x));
      CHECK(slice(x, 0, 1, 2).to_vector() == slice(x, 0, -1, 100).to_vector());
    }
    SUBCASE("slices run as Python's") {
      Tensor const row = Tensor::arange(6, DType::int64);
      CHECK(slice(row, 0, 1, 5, 2).to_vector() == Values{1, 3});
      CHECK(slice(row, 0, -2, 100).to_vector() == Values{4, 5});
      CHECK(slice(row, 0, 4, 1, -2).to_vector() == Values{4, 2});
      CHECK(slice(row, 0, -1, -7, -1).to_vector() == Values{5, 4, 3, 2, 1, 0});
      CHECK(slice(row, 0, 0, std::numeric_limits<Index>::max(), 5).to_vector() == Values{0, 5});
      CHECK(slice(row, 0, 4, 2).elements() == 0);
      CHECK(slice(row, 0, 2, 4, -1).elements() == 0);
    }
    SUBCASE("split and concatenate undo each other") {
      for (Index axis = 0; axis < 4; ++axis) CHECK(concatenate(split(x, {1, x.size(axis) - 1}, axis), axis).to_vector() == x.to_vector());
    }
    SUBCASE("padding, triangle, repetition") {
      CHECK(pad(Tensor::arange(3, DType::float32), 0, 1, 2, -1).to_vector() == Values{-1, 0, 1, 2, -1, -1});
      CHECK(tril(Tensor::ones({2, 3}, DType::int64)).to_vector() == Values{1, 0, 0, 1, 1, 0});
      CHECK(expand(Tensor::arange(2, DType::int64).viewed({2, 1}), {2, 2, 3}).to_vector() == Values{0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1});
    }
  }

  TEST_CASE("broadcasting with extents of 1 and 0") {
    Tensor const a = Tensor::ones({0, 3}, DType::float64), b = Tensor::ones({1, 3}, DType::float64).set_requires_grad(), y = a * b;
    CHECK(y.shape() == Shape{0, 3});
    CHECK(grad(sum(y), b).to_vector() == Values{0, 0, 0});
    CHECK(add(Tensor::ones({1, 1}, DType::float64), Tensor::ones({0}, DType::float64)).shape() == Shape{1, 0});
    CHECK(sum(a).item() == 0);
    CHECK(sum(a, {0}).to_vector() == Values{0, 0, 0});
    CHECK(softmax(a).shape() == Shape{0, 3});
  }

  TEST_CASE("ties share the gradient") {
    Tensor const x = vector_of({1, 3, 3, 2});
    CHECK(slope([](Tensor const& v) { return max(v); }, x) == Values{0, 0.5, 0.5, 0});
    CHECK(slope([](Tensor const& v) { return min(v); }, vector_of({1, 3, 1, 1})) == Values{1.0 / 3, 0, 1.0 / 3, 1.0 / 3});
    CHECK(slope([&](Tensor const& v) { return maximum(v, x); }, x) == Values(4, 0.5));
    CHECK(slope([&](Tensor const& v) { return minimum(x, v); }, x) == Values(4, 0.5));
    CHECK(slope([](Tensor const& v) { return maximum(v, v); }, x) == Values(4, 1));
    CHECK(argmax(x, 0).item() == 1);
  }

  TEST_CASE("kinks have the documented derivative") {
    Tensor const x = vector_of({-1, 0, 1});
    CHECK(slope(relu, x) == Values{0, 0, 1});
    CHECK(slope([](Tensor const& v) { return abs(v); }, x) == Values{-1, 0, 1});
    CHECK(slope([](Tensor const& v) { return clamp(v, -1, 0); }, x) == Values{1, 1, 0});
    CHECK(slope([](Tensor const& v) { return v * stop_gradient(v); }, x) == Values{-1, 0, 1});
    CHECK(pow(vector_of({0}), 0.0).item() == 1);
    CHECK(slope([](Tensor const& v) { return pow(v, 2.0); }, x) == Values{-2, 0, 2});
    CHECK(slope([](Tensor const& v) { return pow(v, 1.0); }, x) == Values{1, 1, 1});
  }

  TEST_CASE("nothing overflows where the function does not") {
    for (DType const dtype : {DType::float32, DType::float64}) {
      Tensor const x = vector_of({-1e4, -100, 0, 100, 1e4}).to(dtype);
      for (auto const& f : {tanh, sigmoid, softplus, gelu, gelu_exact, silu, erf}) {
        CHECK(all_finite(f(x).to_vector()));
        CHECK(all_finite(slope(f, x)));
      }
      CHECK(softplus(x).at(4) == 1e4);
      CHECK(logsumexp(x).item() == 1e4);
    }
  }

  TEST_CASE("logsumexp is the same with and without a gradient") {
    for (DType const dtype : {DType::float32, DType::float64}) {
      auto const row_of = [](double value) { return Tensor::full({1, 37}, value, DType::float64); };
      Tensor x = concatenate({test::normal({3, 37}, "x"), row_of(-infinity), row_of(infinity)}, 0).to(dtype);
      Tensor const plain = logsumexp(x, {-1});
      CHECK(plain.at(3) == -infinity);
      CHECK(plain.at(4) == infinity);
      x.set_requires_grad();
      Tensor const recorded = logsumexp(x, {-1});
      CHECK(test::difference(plain.rows(0, 3), recorded.rows(0, 3)) <= (dtype == DType::float32 ? 1e-6 : 1e-14));
    }
  }

  TEST_CASE("a saturated softmax has finite derivatives") {
    for (DType const dtype : {DType::float32, DType::float64}) {
      Tensor const x = test::leaf({1e4, -1e4, 0, -1e4, -1e4, 1e4, 1e4, 0}, {2, 4}, dtype), weights = vector_of({1, 2, 3, 4}, dtype);
      Tensor const seen = Tensor::ones({4}, dtype), targets = Tensor::ones({2}, DType::int64);
      std::vector<std::function<Tensor(Tensor const&)>> const functions{
          [](Tensor const& v) { return softmax(v); },
          [](Tensor const& v) { return log_softmax(v); },
          [&](Tensor const& v) { return masked_softmax(v, seen); },
          [](Tensor const& v) { return logsumexp(v, {-1}, true); },
          [&](Tensor const& v) { return cross_entropy(v, targets, 0.1); },
      };
      for (auto const& f : functions) {
        Tensor const y = f(x);
        CHECK(all_finite(y.to_vector()));
        Tensor const first = grad(sum(y * weights), x, true);
        CHECK(all_finite(first.to_vector()));
        if (first.requires_grad()) CHECK(all_finite(grad(sum(first * weights), x).to_vector()));
      }
      CHECK(softmax(x).to_vector() == Values{1, 0, 0, 0, 0, 0.5, 0.5, 0});
    }
  }

  TEST_CASE("a row that sees nothing is zeros, with zero derivatives of both orders") {
    for (DType const dtype : {DType::float32, DType::float64}) {
      Tensor const x = test::leaf({1, 2, 3, 4, 5, 6}, {2, 3}, dtype), visible = Tensor::of({1, 1, 0, 0, 0, 0}, {2, 3}, dtype);
      Tensor const weights = vector_of({1, 2, 3}, dtype), y = masked_softmax(x, visible);
      CHECK(y.at(0) + y.at(1) == doctest::Approx(1));
      Tensor const first = grad(sum(y * y * weights), x, true), second = grad(sum(first * first * weights), x);
      for (Tensor const& each : {y, first, second}) {
        CHECK(all_finite(each.to_vector()));
        CHECK(each.at(0) != 0);
        for (Index i : {2, 3, 4, 5}) CHECK(each.at(i) == 0);
      }
    }
  }

  TEST_CASE("what a mask hides may be anything") {
    Tensor const x = test::leaf({1, not_a_number, 2, infinity, not_a_number, -infinity}, {2, 3});
    Tensor const y = masked_softmax(x, Tensor::of({1, 0, 1, 0, 0, 0}, {2, 3}, DType::float64));
    CHECK(all_finite(y.to_vector()));
    CHECK(all_finite(grad(sum(y * y), x).to_vector()));
    CHECK(masked_fill(x, Tensor::of({0, 1, 0, 1, 1, 1}, {2, 3}, DType::float64), 0).to_vector() == Values{1, 0, 2, 0, 0, 0});
  }

  TEST_CASE("NaN stays NaN") {
    // At every place of a long row, so that vectors and tails are both met.
    for (DType const dtype : {DType::float32, DType::float64})
      for (Index position = 0; position < 37; ++position) {
        Values values(37, 0.5);
        at(values, position) = not_a_number;
        Tensor const x = vector_of(values, dtype), zero = Tensor::zeros({37}, dtype);
        CAPTURE(position);
        std::vector<Tensor> const by_element{relu(x),          abs(x),           maximum(x, zero), maximum(zero, x),
                                             minimum(x, zero), minimum(zero, x), clamp(x, -1, 1)};
        std::vector<Tensor> const of_all{sum(x), max(x), min(x), max(x.viewed({37, 1}), {0}), logsumexp(x)};
        for (std::size_t i = 0; i < by_element.size(); ++i) CHECK_MESSAGE(std::isnan(by_element[i].at(position)), "function ", i);
        for (std::size_t i = 0; i < of_all.size(); ++i) CHECK_MESSAGE(std::isnan(of_all[i].item()), "reduction ", i);
        CHECK(not_equal(x, x).at(position) == 1);
        CHECK(equal(x, x).at(position) == 0);
        CHECK(where(x, zero, x).at(position) == 0);
        CHECK(std::ranges::all_of(softmax(x).to_vector(), [](double v) { return std::isnan(v); }));
      }
  }

  TEST_CASE("infinities keep their meaning") {
    Tensor const x = vector_of({infinity, 1, -infinity});
    CHECK(maximum(x, Tensor::zeros({3}, DType::float64)).to_vector() == Values{infinity, 1, 0});
    CHECK(minimum(Tensor::zeros({3}, DType::float64), x).to_vector() == Values{0, 0, -infinity});
    CHECK(maximum(Tensor::zeros({3}, DType::float64), x).to_vector() == Values{infinity, 1, 0});
    CHECK(relu(x).to_vector() == Values{infinity, 1, 0});
    CHECK(clamp(x, -2, 2).to_vector() == Values{2, 1, -2});
    CHECK(softmax(vector_of({-infinity, 0, 0})).to_vector() == Values{0, 0.5, 0.5});
  }
}
