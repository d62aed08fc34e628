// The generic suite: all samples (tests/autograd/samples) of all operations are held to the same questions. Are the first and second
// derivatives those of finite differences? Does float32 agree with float64, the kernel with the plain composition, one thread with two?
// Do wrong calls fail with the promised words? Then the edges that a random draw never meets.

#include "autograd/ops/operations.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <regex>
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "autograd/error.hpp"
#include "autograd/graph.hpp"
#include "autograd/ops/info.hpp"
#include "autograd/random.hpp"
#include "autograd/registry.hpp"
#include "tests/autograd/samples/operation_check.hpp"
#include "tests/gradients.hpp"
#include "tests/threads.hpp"

using namespace heed;
using test::check_agree, test::check_ok, test::same_bits, test::value_and_gradients;
using test::difference, test::OperationCheck, test::Sample, test::SampleInput;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

/// With sanitizers and in an emulator, where every draw costs a minute: addresses and instructions do not depend on the numbers.
#if defined(HEED_SANITIZED) || defined(HEED_EMULATED)
constexpr bool slow = true;
#else
constexpr bool slow = false;
#endif
/// Elements of an input that a draw checks: all in the first, then as many as find what depends on the numbers.
constexpr std::int64_t most_of(int draw) { return slow ? 4 : draw == 0 ? std::numeric_limits<std::int64_t>::max() : 16; }

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
  for (OperationCheck const& operation : Registry<OperationCheck>::all()) {
    for (std::size_t s = 0; s < operation.samples.size(); ++s) {
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
  }
}

/// The value, and where the operation has derivatives the gradients.
std::vector<Tensor> results_of(OperationCheck const& operation, TensorFunction const& f, std::vector<Tensor> const& at, DType dtype) {
  if (operation.differentiable) return test::value_and_gradients(f, at, dtype);
  std::vector<Tensor> inputs;
  for (Tensor const& input : at) inputs.push_back(input.to(dtype));
  return {f(inputs)};
}

Tensor vector_of(std::vector<double> const& values) { return Tensor::of(values, {static_cast<std::int64_t>(values.size())}); }

/// The gradient of Σ f(x) at x.
std::vector<double> slope(std::function<Tensor(Tensor const&)> const& f, Tensor x) {
  x.set_requires_grad();
  return grad(sum(f(x)), x).to_vector();
}

bool all_finite(std::vector<double> const& values) {
  return std::ranges::all_of(values, [](double value) { return std::isfinite(value); });
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

  TEST_CASE("gradients are those of finite differences") {
    for_each_draw(4, [](OperationCheck const& operation, Sample const& sample, std::vector<Tensor> const& inputs, int draw) {
      if (!operation.differentiable) return;
      check_ok(gradcheck(sample.call, inputs, 1e-7, 1e-3, most_of(draw)));
    });
  }

  TEST_CASE("second derivatives are those of finite differences") {
    for_each_draw(4, [](OperationCheck const& operation, Sample const& sample, std::vector<Tensor> const& inputs, int draw) {
      if (!operation.differentiable) return;
      check_ok(gradgradcheck(sample.call, inputs, 1e-6, 1e-3, most_of(draw)));
    });
  }

  TEST_CASE("derivatives along a direction are those of finite differences") {
    for_each_draw(1, [](OperationCheck const& operation, Sample const& sample, std::vector<Tensor> const& inputs, int) {
      if (operation.differentiable) check_ok(jvpcheck(sample.call, inputs));
    });
  }

  TEST_CASE("second derivatives by kernels are those of the plain composition") {
    for_each_draw(1, [](OperationCheck const& operation, Sample const& sample, std::vector<Tensor> const& inputs, int) {
      if (!operation.differentiable || !sample.reference) return;
      for (auto const& each : {std::pair{DType::float64, 1e-11}, std::pair{DType::float32, 1e-4}}) {
        DType const dtype = each.first;
        double const tolerance = each.second;
        auto const gradient_of = [&](TensorFunction const& f, std::size_t input) {
          return [=](std::vector<Tensor> const& at) {
            Tensor const y = f(at);
            return grad({y}, {at[input]}, test::projection({y}), true).front();
          };
        };
        for (std::size_t i = 0; i < inputs.size(); ++i) {
          INFO(to_string(dtype), ", of the gradient of input ", i);
          check_agree(value_and_gradients(gradient_of(sample.call, i), inputs, dtype),
                      value_and_gradients(gradient_of(sample.reference, i), inputs, dtype), tolerance);
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
      auto const gradient = [&](std::vector<Tensor> const& at) {
        Tensor const y = sample.call(at);
        return grad({y}, {at[0]}, test::projection({y}), true).front();
      };
      check_ok(gradgradcheck(gradient, inputs, 1e-5, 1e-3, 4));
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
        auto const& dtype = each.first;
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
    for (OperationCheck const& operation : Registry<OperationCheck>::all()) {
      for (std::size_t e = 0; e < operation.errors.size(); ++e) {
        INFO(operation.name, ", error case ", e);
        try {
          operation.errors[e].call();
          FAIL_CHECK("does not throw; expected: ", operation.errors[e].message);
        } catch (Error const& error) {
          std::string const message = error.what();
          CHECK_MESSAGE(message.find(operation.errors[e].message) != std::string::npos, message,
                        " — expected: ", operation.errors[e].message);
          CHECK(message.find('\n') == std::string::npos);
          std::string function = operation.name.substr(0, operation.name.find(' '));
          if (function.starts_with("fused_")) function.erase(0, 6);  // the one of three tensors, attention(), says the same
          CHECK_MESSAGE(message.starts_with(function + ":"), message, " — speaks of another function than ", function);
        }
      }
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
    Tensor places({37, 131}, DType::int64);
    Tensor columns({37, 131, 67}, DType::int64);
    for (std::size_t i = 0; i < places.mutable_data<std::int64_t>().size(); ++i)
      places.mutable_data<std::int64_t>()[i] = static_cast<std::int64_t>(stream.below(i, 11));
    for (std::size_t i = 0; i < columns.mutable_data<std::int64_t>().size(); ++i)
      columns.mutable_data<std::int64_t>()[i] = static_cast<std::int64_t>(stream.below(i, 67));
    Tensor const table = Tensor::normal({11, 67}, stream.child("table"), DType::float32);

    std::vector<std::pair<char const*, std::function<Tensor()>>> const calls{
        {"tanh", [&] { return tanh(x); }},
        {"multiply", [&] { return x * row; }},
        {"sum of an inner axis", [&] { return sum(x, {1}); }},
        {"sum of rows", [&] { return sum(x, {-1}); }},
        {"max", [&] { return max(x, {0}); }},
        {"cumsum", [&] { return cumsum(x, 1); }},
        {"softmax", [&] { return softmax(x); }},
        {"layer_norm", [&] { return layer_norm(x, row, row); }},
        {"matmul", [&] { return matmul(x, w); }},
        {"linear", [&] { return linear(x, transpose(w), {}); }},
        {"permute",
         [&] {
           return permute(x, {2, 0, 1});
         }},
        {"permute of the middle",
         [&] {
           return permute(x, {1, 0, 2});
         }},
        {"slice", [&] { return slice(x, 1, 130, 3, -3); }},
        {"concatenate",
         [&] {
           return concatenate({x, x * 2}, 1);
         }},
        {"expand",
         [&] {
           return expand(x, {2, 37, 131, 67});
         }},
        {"tril", [&] { return tril(x, 5); }},
        {"gather", [&] { return gather(x, 2, columns); }},
        {"scatter_add",
         [&] {
           return scatter_add({37, 131, 70}, 2, columns, x);
         }},
        {"scatter_add over rows",
         [&] {
           return scatter_add({37, 200, 67}, 1, columns, x);
         }},
        {"embedding", [&] { return embedding(table, places); }},
        {"embedding_transposed", [&] { return embedding_transposed(x, places, 11); }},
        {"conv2d", [&] { return conv2d(images, kernels, {}, 1, 1); }},
        {"gradient of conv2d",
         [&] { return Tensor::of(slope([&](Tensor const& v) { return conv2d(v, kernels, {}, 2, 1); }, images.clone()), images.shape()); }},
        {"cross_entropy", [&] { return cross_entropy(x, places, 0.1); }},
        {"dropout", [&] { return dropout(x, 0.3, stream); }},
    };
    for (auto const& each : calls) {
      auto const& name = each.first;
      auto const& call = each.second;
      INFO(name);
      Tensor one, two;
      {
        Threads const single(1);
        one = call();
      }
      {
        Threads const pair(2);
        two = call();
      }
      CHECK(same_bits(one, two));
    }
  }

  TEST_CASE("the layout of moved elements") {
    // [b, t, h, d] holds its own coordinates as a number.
    Tensor const x = Tensor::arange(2 * 3 * 4 * 5, DType::int64).viewed({2, 3, 4, 5});
    SUBCASE("permute, in every order") {
      std::vector<std::int64_t> axes{0, 1, 2, 3};
      do {
        Tensor const y = permute(x, axes);
        std::array<std::int64_t, 4> const stride{60, 20, 5, 1};
        std::int64_t element = 0;
        for (std::int64_t i = 0; i < y.size(0); ++i) {
          for (std::int64_t j = 0; j < y.size(1); ++j) {
            for (std::int64_t k = 0; k < y.size(2); ++k) {
              for (std::int64_t l = 0; l < y.size(3); ++l) {
                auto const along = [&](std::size_t axis) { return stride[static_cast<std::size_t>(axes[axis])]; };
                REQUIRE(y.at(element++) == static_cast<double>(i * along(0) + j * along(1) + k * along(2) + l * along(3)));
              }
            }
          }
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
      using Values = std::vector<double>;
      CHECK(slice(row, 0, 1, 5, 2).to_vector() == Values{1, 3});
      CHECK(slice(row, 0, -2, 100).to_vector() == Values{4, 5});
      CHECK(slice(row, 0, 4, 1, -2).to_vector() == Values{4, 2});
      CHECK(slice(row, 0, -1, -7, -1).to_vector() == Values{5, 4, 3, 2, 1, 0});
      CHECK(slice(row, 0, 0, std::numeric_limits<std::int64_t>::max(), 5).to_vector() == Values{0, 5});
      CHECK(slice(row, 0, 4, 2).elements() == 0);
      CHECK(slice(row, 0, 2, 4, -1).elements() == 0);
    }
    SUBCASE("split and concatenate undo each other") {
      for (std::int64_t axis = 0; axis < 4; ++axis)
        CHECK(concatenate(split(x, {1, x.size(axis) - 1}, axis), axis).to_vector() == x.to_vector());
    }
    SUBCASE("padding, triangle, repetition") {
      CHECK(pad(Tensor::arange(3, DType::float32), 0, 1, 2, -1).to_vector() == std::vector<double>{-1, 0, 1, 2, -1, -1});
      CHECK(tril(Tensor::ones({2, 3}, DType::int64)).to_vector() == std::vector<double>{1, 0, 0, 1, 1, 0});
      CHECK(expand(Tensor::arange(2, DType::int64).viewed({2, 1}), {2, 2, 3}).to_vector() ==
            std::vector<double>{0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1});
    }
  }

  TEST_CASE("broadcasting with extents of 1 and 0") {
    Tensor a = Tensor::ones({0, 3}, DType::float64);
    Tensor b = Tensor::ones({1, 3}, DType::float64);
    b.set_requires_grad();
    Tensor const y = a * b;
    CHECK(y.shape() == Shape{0, 3});
    CHECK(grad(sum(y), b).to_vector() == std::vector<double>{0, 0, 0});
    CHECK(add(Tensor::ones({1, 1}, DType::float64), Tensor::ones({0}, DType::float64)).shape() == Shape{1, 0});
    CHECK(sum(a).item() == 0);
    CHECK(sum(a, {0}).to_vector() == std::vector<double>{0, 0, 0});
    CHECK(matmul(Tensor::ones({2, 0}, DType::float64), Tensor::ones({0, 3}, DType::float64)).to_vector() == std::vector<double>(6, 0));
    CHECK(softmax(a).shape() == Shape{0, 3});
  }

  TEST_CASE("ties share the gradient") {
    Tensor const x = vector_of({1, 3, 3, 2});
    CHECK(slope([](Tensor const& v) { return max(v); }, x) == std::vector<double>{0, 0.5, 0.5, 0});
    CHECK(slope([](Tensor const& v) { return min(v); }, vector_of({1, 3, 1, 1})) == std::vector<double>{1.0 / 3, 0, 1.0 / 3, 1.0 / 3});
    CHECK(slope([&](Tensor const& v) { return maximum(v, x); }, x) == std::vector<double>(4, 0.5));
    CHECK(slope([&](Tensor const& v) { return minimum(x, v); }, x) == std::vector<double>(4, 0.5));
    CHECK(slope([](Tensor const& v) { return maximum(v, v); }, x) == std::vector<double>(4, 1));
    CHECK(argmax(x, 0).item() == 1);
  }

  TEST_CASE("kinks have the documented derivative") {
    Tensor const x = vector_of({-1, 0, 1});
    CHECK(slope(relu, x) == std::vector<double>{0, 0, 1});
    CHECK(slope([](Tensor const& v) { return abs(v); }, x) == std::vector<double>{-1, 0, 1});
    CHECK(slope([](Tensor const& v) { return clamp(v, -1, 0); }, x) == std::vector<double>{1, 1, 0});
    CHECK(slope([](Tensor const& v) { return v * stop_gradient(v); }, x) == std::vector<double>{-1, 0, 1});
    CHECK(pow(vector_of({0}), 0.0).item() == 1);
    CHECK(slope([](Tensor const& v) { return pow(v, 2.0); }, x) == std::vector<double>{-2, 0, 2});
    CHECK(slope([](Tensor const& v) { return pow(v, 1.0); }, x) == std::vector<double>{1, 1, 1});
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
    double const infinite = std::numeric_limits<double>::infinity();
    for (DType const dtype : {DType::float32, DType::float64}) {
      Tensor x = concatenate({Tensor::normal({3, 37}, Stream(1, "x"), DType::float64), Tensor::full({1, 37}, -infinite, DType::float64),
                              Tensor::full({1, 37}, infinite, DType::float64)},
                             0)
                     .to(dtype);
      Tensor const plain = logsumexp(x, {-1});
      CHECK(plain.at(3) == -infinite);
      CHECK(plain.at(4) == infinite);
      x.set_requires_grad();
      Tensor const recorded = logsumexp(x, {-1});
      for (std::int64_t row = 0; row < 3; ++row)
        CHECK(plain.at(row) == doctest::Approx(recorded.at(row)).epsilon(dtype == DType::float32 ? 1e-6 : 1e-14));
    }
  }

  TEST_CASE("a saturated softmax has finite derivatives") {
    for (DType const dtype : {DType::float32, DType::float64}) {
      Tensor x = Tensor::of({1e4, -1e4, 0, -1e4, -1e4, 1e4, 1e4, 0}, {2, 4}, dtype);
      x.set_requires_grad();
      Tensor const weights = Tensor::of({1, 2, 3, 4}, {4}, dtype);
      Tensor const seen = Tensor::ones({4}, dtype);
      std::vector<std::function<Tensor(Tensor const&)>> const functions{
          [](Tensor const& v) { return softmax(v); },
          [](Tensor const& v) { return log_softmax(v); },
          [&](Tensor const& v) { return masked_softmax(v, seen); },
          [](Tensor const& v) { return logsumexp(v, {-1}, true); },
          [](Tensor const& v) {
            return cross_entropy(v, Tensor::of(std::vector<std::int64_t>{1, 1}, {2}), 0.1);
          },
      };
      for (auto const& f : functions) {
        Tensor const y = f(x);
        CHECK(all_finite(y.to_vector()));
        Tensor const first = grad(sum(y * weights), x, true);
        CHECK(all_finite(first.to_vector()));
        if (first.requires_grad()) CHECK(all_finite(grad(sum(first * weights), x).to_vector()));
      }
      CHECK(softmax(x).to_vector() == std::vector<double>{1, 0, 0, 0, 0, 0.5, 0.5, 0});
    }
  }

  TEST_CASE("a row that sees nothing is zeros, with zero derivatives of both orders") {
    for (DType const dtype : {DType::float32, DType::float64}) {
      Tensor x = Tensor::of({1, 2, 3, 4, 5, 6}, {2, 3}, dtype);
      x.set_requires_grad();
      Tensor const visible = Tensor::of({1, 1, 0, 0, 0, 0}, {2, 3}, dtype);
      Tensor const weights = Tensor::of({1, 2, 3}, {3}, dtype);
      Tensor const y = masked_softmax(x, visible);
      for (std::int64_t i : {2, 3, 4, 5}) CHECK(y.at(i) == 0);
      CHECK(y.at(0) + y.at(1) == doctest::Approx(1));
      Tensor const first = grad(sum(y * y * weights), x, true);
      Tensor const second = grad(sum(first * first * weights), x);
      CHECK(all_finite(first.to_vector()));
      CHECK(all_finite(second.to_vector()));
      CHECK(first.at(0) != 0);
      CHECK(second.at(0) != 0);
      for (std::int64_t i : {2, 3, 4, 5}) {
        CHECK(first.at(i) == 0);
        CHECK(second.at(i) == 0);
      }
    }
  }

  TEST_CASE("what a mask hides may be anything") {
    Tensor x = Tensor::of({1, not_a_number, 2, infinity, not_a_number, -infinity}, {2, 3}, DType::float64);
    x.set_requires_grad();
    Tensor const y = masked_softmax(x, Tensor::of({1, 0, 1, 0, 0, 0}, {2, 3}, DType::float64));
    CHECK(all_finite(y.to_vector()));
    CHECK(all_finite(grad(sum(y * y), x).to_vector()));
    CHECK(masked_fill(x, Tensor::of({0, 1, 0, 1, 1, 1}, {2, 3}, DType::float64), 0).to_vector() == std::vector<double>{1, 0, 2, 0, 0, 0});
  }

  TEST_CASE("NaN stays NaN") {
    // At every place of a long row, so that vectors and tails are both met.
    for (DType const dtype : {DType::float32, DType::float64}) {
      for (std::int64_t place = 0; place < 37; ++place) {
        std::vector<double> values(37, 0.5);
        values[static_cast<std::size_t>(place)] = not_a_number;
        Tensor const x = vector_of(values).to(dtype);
        Tensor const zero = Tensor::zeros({37}, dtype);
        CAPTURE(place);
        CHECK(std::isnan(relu(x).at(place)));
        CHECK(std::isnan(abs(x).at(place)));
        CHECK(std::isnan(maximum(x, zero).at(place)));
        CHECK(std::isnan(maximum(zero, x).at(place)));
        CHECK(std::isnan(minimum(x, zero).at(place)));
        CHECK(std::isnan(minimum(zero, x).at(place)));
        CHECK(std::isnan(clamp(x, -1, 1).at(place)));
        CHECK(not_equal(x, x).at(place) == 1);
        CHECK(equal(x, x).at(place) == 0);
        CHECK(where(x, zero, x).at(place) == 0);
        CHECK(std::isnan(sum(x).item()));
        CHECK(std::isnan(max(x).item()));
        CHECK(std::isnan(min(x).item()));
        CHECK(std::isnan(max(x.viewed({37, 1}), {0}).item()));
        CHECK(std::isnan(logsumexp(x).item()));
        CHECK(std::ranges::all_of(softmax(x).to_vector(), [](double v) { return std::isnan(v); }));
      }
    }
  }

  TEST_CASE("infinities keep their meaning") {
    Tensor const x = vector_of({infinity, 1, -infinity});
    CHECK(maximum(x, Tensor::zeros({3}, DType::float64)).to_vector() == std::vector<double>{infinity, 1, 0});
    CHECK(minimum(Tensor::zeros({3}, DType::float64), x).to_vector() == std::vector<double>{0, 0, -infinity});
    CHECK(maximum(Tensor::zeros({3}, DType::float64), x).to_vector() == std::vector<double>{infinity, 1, 0});
    CHECK(relu(x).to_vector() == std::vector<double>{infinity, 1, 0});
    CHECK(clamp(x, -2, 2).to_vector() == std::vector<double>{2, 1, -2});
    CHECK(softmax(vector_of({-infinity, 0, 0})).to_vector() == std::vector<double>{0, 0.5, 0.5});
  }
}
