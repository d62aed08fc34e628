// The product of a Hessian and a vector, of a GPT of one layer (1 × 4 heads × 1,024 × 64), beside its gradient, and without attention's
// kernels; one thread. Of every score, or of those that are named:
//
//     cmake --build build/release --target bench_hessian && build/release/bench_hessian additive

#include <fmt/format.h>

#include "autograd/graph.hpp"
#include "autograd/graph_memory.hpp"
#include "autograd/parallel.hpp"
#include "experiments/bench/bench.hpp"
#include "nn/models/blocks.hpp"

int main(int count, char** words) {
  using namespace heed;
  set_threads(1);
  std::vector<std::string> scores(words + 1, words + count);
  if (scores.empty()) scores = Registry<ScoreKind>::names();
  fmt::print("score        gradient ms      MB  product ms      MB  without kernels ms      MB\n");
  for (auto const& score : scores) {
    GptSettings settings;
    settings.layers = 1, settings.width = 256, settings.context = 1024;
    settings.attention.score = score;
    Parameters parameters(1, DType::float32);
    Gpt const model(parameters, settings, 64);
    Tensor const tokens = Tensor::uniform({1, 1024}, Stream(1, "tokens"), DType::float64, 0, 64).to(DType::int64);
    std::vector<Tensor> leaves, direction;
    for (auto const& [name, parameter] : parameters.all()) {
      leaves.push_back(parameter);
      direction.push_back(Tensor::normal(parameter.shape(), Stream(2, name), DType::float32));
    }
    auto const gradient = [&](bool again = false) {
      return grad({model.loss({{"inputs", tokens}, {"targets", tokens}}, {})}, leaves, {}, again);
    };
    auto const product = [&] {
      ForSecondDerivatives const held_by_rows;
      grad(gradient(true), leaves, direction);
    };
    auto const without_kernels = [&] {
      ReferenceAttention const reference;
      product();
    };
    auto const a = measure_time([&] { gradient(); }, 0.5), b = measure_time(product, 0.5), c = measure_time(without_kernels, 0.5);
    fmt::print("{:<12} {:>11.1f} {:>7.1f} {:>11.1f} {:>7.1f} {:>19.1f} {:>7.1f}\n", score, a.median_ms, megabytes(a.peak_bytes),
               b.median_ms, megabytes(b.peak_bytes), c.median_ms, megabytes(c.peak_bytes));
  }
}
