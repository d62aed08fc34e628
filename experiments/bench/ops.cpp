#include <algorithm>
#include <memory>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/blas/products.hpp"
#include "autograd/graph.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/product.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/ops/softmax.hpp"
#include "autograd/parallel.hpp"
#include "autograd/random.hpp"
#include "experiments/bench/bench.hpp"
#include "experiments/bench/measure.hpp"

namespace heed {

namespace {

/// One line: `work` does the operation `count` times.
struct OpBenchmark {
  std::string what, shape;
  std::function<void()> work;
  double elements = 0;  ///< of the result; 0: not a matter of elements
  int count = 1;
};

Tensor drawn(Shape const& shape) { return Tensor::uniform(shape, Stream(1, to_string(shape)), DType::float32, -2, 2); }

/// f(x…) under NoGrad.
template <class F, class... X>
OpBenchmark forward(std::string what, F const& f, X const&... x) {
  std::string shapes;
  ((shapes += (shapes.empty() ? "" : " ") + to_string(x.shape())), ...);
  double const elements = std::max({static_cast<double>(x.elements())...});
  return {std::move(what), shapes,
          [=] {
            NoGrad const quiet;
            f(x...);
          },
          elements};
}

OpBenchmark product(std::int64_t n, std::int64_t k, std::int64_t m, bool transpose_a, bool transpose_b) {
  Tensor const a = drawn(transpose_a ? Shape{k, n} : Shape{n, k});
  Tensor const b = drawn(transpose_b ? Shape{m, k} : Shape{k, m});
  auto subject = forward(
      "matmul", [=](Tensor const& x, Tensor const& y) { return matmul(x, y, transpose_a, transpose_b); }, a, b);
  subject.shape =
      fmt::format("[{}, {}]{} x [{}, {}]{}", n, k, transpose_a ? " (a transposed)" : "", k, m, transpose_b ? " (b transposed)" : "");
  subject.elements = 0;
  return subject;
}

/// The fixed cost of an operation: a chain of additions of a few numbers, forward alone and with its gradient.
OpBenchmark chain(bool with_gradient) {
  constexpr int length = 1000;
  Tensor const step = drawn({4});
  return {with_gradient ? "engine, with backward" : "engine, forward", "[4]",
          [=] {
            Tensor x = drawn({4});
            if (with_gradient) x.set_requires_grad();
            Tensor y = x;
            for (int i = 0; i < length; ++i) y = y + step;
            if (with_gradient) backward(y, Tensor::ones({4}, DType::float32));
          },
          0, length};
}

std::vector<OpBenchmark> subjects() {
  Tensor const large = drawn({1000, 1000});
  Tensor const row = drawn({1000});
  Tensor const scores = drawn({768, 64});
  Tensor const stream = drawn({768, 128});
  Tensor const weight = drawn({128});
  Tensor const hidden = drawn({2048, 1536});
  std::vector<OpBenchmark> all{
      chain(false),
      chain(true),
      forward(
          "add", [](auto const& x, auto const& y) { return x + y; }, large, large),
      forward(
          "add a row", [](auto const& x, auto const& y) { return x + y; }, large, row),
      forward(
          "exp", [](auto const& x) { return exp(x); }, large),
      forward(
          "tanh", [](auto const& x) { return tanh(x); }, large),
      forward(
          "gelu", [](auto const& x) { return gelu(x); }, large),
      forward(
          "softmax", [](auto const& x) { return softmax(x); }, scores),
      forward(
          "layer_norm", [](auto const& x, auto const& w) { return layer_norm(x, w, w); }, stream, weight),
      forward(
          "sum over rows", [](auto const& x) { return sum(x, {0}); }, hidden),
      forward(
          "sum over columns", [](auto const& x) { return sum(x, {1}); }, hidden),
      forward(
          "split_heads", [](auto const& x) { return split_heads(x, 4); }, drawn({12, 64, 128})),
  };
  for (auto const& [n, k, m] : std::vector<std::array<std::int64_t, 3>>{{1, 384, 384},
                                                                        {64, 32, 64},
                                                                        {768, 128, 128},
                                                                        {768, 128, 512},
                                                                        {768, 512, 128},
                                                                        {2048, 384, 384},
                                                                        {2048, 384, 1536},
                                                                        {2048, 1536, 384}})
    all.push_back(product(n, k, m, false, true));
  all.push_back(product(128, 768, 512, true, false));
  all.push_back(product(384, 2048, 1536, true, false));
  return all;
}

void bench_ops(BenchOptions const& options, std::ostream& out) {
  auto all = subjects();
  std::vector<std::string> names;
  for (auto const& subject : all) {
    if (std::ranges::find(names, subject.what) == names.end()) names.push_back(subject.what);
  }
  for (auto const& name : options.names) expect_known("bench ops", name, names);
  double const peak = peak_gflops();
  if (!options.json) {
    out << fmt::format("operations, float32, {}; products by {}, at most {:.1f} GFLOP/s: median of {:g} s each\n\n", threads_in_words(),
                       matrix_library(), peak, options.seconds);
    out << fmt::format("{:<22} {:<40} {:>10} {:>10} {:>10} {:>11} {:>8} {:>8} {:>8}\n", "what", "shape", "median µs", "min", "max",
                       "ns/element", "GFLOP/s", "of peak", "pool MB");
  }
  for (auto const& subject : all) {
    if (!options.names.empty() && std::ranges::find(options.names, subject.what) == options.names.end()) continue;
    auto const m = measure(subject.work, options.seconds);
    double const one = 1.0 / subject.count;
    double const per_element = subject.elements > 0 ? 1e6 * m.median_ms / subject.elements : 0;
    if (options.json) {
      out << nlohmann::ordered_json{{"what", subject.what},
                                    {"size", subject.shape},
                                    {"threads", threads()},
                                    {"median_ms", one * m.median_ms},
                                    {"min_ms", one * m.min_ms},
                                    {"max_ms", one * m.max_ms},
                                    {"repetitions", m.repetitions},
                                    {"ns_per_element", per_element},
                                    {"gflops", m.gflops()},
                                    {"peak_gflops", peak},
                                    {"peak_mb", megabytes(m.peak_bytes)}}
                 .dump()
          << '\n';
    } else {
      auto const shown = [](double value, char const* format) {
        return value > 0 ? fmt::format(fmt::runtime(format), value) : std::string();
      };
      out << fmt::format("{:<22} {:<40} {:>10.3f} {:>10.3f} {:>10.3f} {:>11} {:>8} {:>8} {:>8.2f}\n", subject.what, subject.shape,
                         1e3 * one * m.median_ms, 1e3 * one * m.min_ms, 1e3 * one * m.max_ms, shown(per_element, "{:.3f}"),
                         shown(m.gflops(), "{:.1f}"), shown(100 * m.gflops() / peak, "{:.1f}%"), megabytes(m.peak_bytes));
    }
    out.flush();
  }
}

Declared<BenchTopic> const ops_benchmark{
    {"ops", "single operations, and the engine's own overhead: microseconds, nanoseconds per element, share of the machine's peak",
     bench_ops}};

}  // namespace

}  // namespace heed
