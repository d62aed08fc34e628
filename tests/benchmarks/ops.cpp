// Single operations and the engine's own overhead, float32, one thread: the time of one, an element's, and a product's share of the
// processor's peak.
//
//     cmake --build build/release --target bench_ops && build/release/bench_ops

#include <array>

#include <fmt/format.h>

#include "autograd/graph.hpp"
#include "autograd/ops/operations.hpp"
#include "autograd/parallel.hpp"
#include "autograd/random.hpp"
#include "experiments/bench/bench.hpp"

namespace {

using namespace heed;

Tensor drawn(Shape const& shape) { return Tensor::uniform(shape, Stream(1, to_string(shape)), DType::float32, -2, 2); }

/// Of work with so many parts: elements of a result, or operations.
void print_time(std::string const& what, double parts, std::function<void()> const& work) {
  double const microseconds = 1e3 * measure_time(work, 0.5).median_ms;
  fmt::print("{:<46} {:>10.3f} µs {:>8.3f} ns each\n", what, microseconds, 1e3 * microseconds / parts);
}

void print_product(Tensor const& a, Tensor const& b, bool transpose_a) {
  auto const work = [&] { return matmul(a, b, transpose_a, !transpose_a); };
  auto const m = measure_time(work, 0.5);
  fmt::print("{:<46} {:>10.3f} µs {:>8.1f} GFLOP/s, {:.0f} % of peak\n",
             fmt::format("{}{} × {}{}", to_string(a.shape()), transpose_a ? "ᵀ" : "", to_string(b.shape()), transpose_a ? "" : "ᵀ"),
             1e3 * m.median_ms, m.gflops(), 100 * share_of_peak(work, m.product_gflop, 0.5).share);
}

void add_up(Tensor const& x) {
  Tensor const step = drawn({4});
  Tensor y = x;
  for (int i = 0; i < 1000; ++i) y = y + step;
  if (x.requires_grad()) backward(y, step);
}

}  // namespace

int main() {
  set_threads(1);
  print_time("1,000 additions of [4], and their gradient", 1e3, [] { add_up(drawn({4}).set_requires_grad()); });
  NoGrad const quiet;
  print_time("1,000 additions of [4]", 1e3, [] { add_up(drawn({4})); });
  Tensor const x = drawn({1000, 1000}), row = drawn({1000}), wide = drawn({2048, 1536}), stream = drawn({12, 64, 128});
  print_time("x + y, [1000, 1000]", 1e6, [&] { return x + x; });
  print_time("x + row, [1000, 1000]", 1e6, [&] { return x + row; });
  print_time("exp, [1000, 1000]", 1e6, [&] { return exp(x); });
  print_time("tanh, [1000, 1000]", 1e6, [&] { return tanh(x); });
  print_time("gelu, [1000, 1000]", 1e6, [&] { return gelu(x); });
  print_time("softmax, [1000, 1000]", 1e6, [&] { return softmax(x); });
  print_time("layer_norm, [1000, 1000]", 1e6, [&] { return layer_norm(x, row, row); });
  print_time("sum over rows, [2048, 1536]", 2048 * 1536, [&] { return sum(wide, {0}); });
  print_time("sum over columns, [2048, 1536]", 2048 * 1536, [&] { return sum(wide, {1}); });
  print_time("split_heads, [12, 64, 128]", 12 * 64 * 128, [&] { return split_heads(stream, 4); });
  for (auto const& [n, k, m] : std::vector<std::array<Index, 3>>{
           {1, 384, 384}, {64, 32, 64}, {768, 128, 512}, {768, 512, 128}, {2048, 384, 1536}, {2048, 1536, 384}})
    print_product(drawn({n, k}), drawn({m, k}), false);
  print_product(drawn({768, 128}), drawn({768, 512}), true);
  print_product(drawn({2048, 384}), drawn({2048, 1536}), true);
}
