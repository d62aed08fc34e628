// Products of a Hessian with a vector through fused attention, beside a gradient and beside the reference's.

#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/graph.hpp"
#include "autograd/graph_memory.hpp"
#include "autograd/parallel.hpp"
#include "experiments/bench/attention_size.hpp"
#include "experiments/bench/bench.hpp"
#include "experiments/bench/gpt_subject.hpp"
#include "experiments/bench/measure.hpp"
#include "nn/attention/attention.hpp"

namespace heed {

namespace {

constexpr std::int64_t hessian_vocabulary = 64;

/// A GPT of one layer, its gradient and the product of its loss's Hessian with a vector.
class OneLayer {
 public:
  OneLayer(std::string const& score, AttentionSize const& size)
      : subject_({"", 1, size.heads, size.heads * size.width, size.length, size.batch, size.length, hessian_vocabulary, score}, false) {
    for (auto const& [name, parameter] : subject_.parameters().all()) {
      leaves_.push_back(parameter);
      direction_.push_back(Tensor::normal(parameter.shape(), Stream(2, name), parameter.dtype()));
    }
  }

  void gradient() const { grad({subject_.loss()}, leaves_); }
  void product() const {
    ForSecondDerivatives const held_by_rows;
    std::vector<Tensor> gradient = grad({subject_.loss()}, leaves_, {}, true);
    grad(std::move(gradient), leaves_, direction_);
  }

 private:
  GptSubject subject_;
  std::vector<Tensor> leaves_, direction_;
};

void bench_hessian(BenchOptions const& options, std::ostream& out) {
  AttentionSize const size = attention_size_of(options.size, {1, 4, 1024, 64});
  auto const known = Registry<ScoreKind>::names();
  for (auto const& name : options.names) expect_known("bench hessian", name, known);
  if (!options.json) {
    out << fmt::format("a GPT of one layer, B x H x T x d = {}, float32, {}: median of {:g} s each\n\n", size.text(), threads_in_words(),
                       options.seconds);
    out << fmt::format("{:<11} {:>11} {:>8} {:>10} {:>11} {:>8} {:>11} {:>13} {:>8}\n", "score", "gradient ms", "peak MB", "product ms",
                       "x gradient", "peak MB", "x gradient", "reference ms", "peak MB");
  }
  for (auto const& score : options.names.empty() ? known : options.names) {
    OneLayer const subject(score, size);
    auto const gradient = measure([&] { subject.gradient(); }, options.seconds);
    auto const product = measure([&] { subject.product(); }, options.seconds);
    auto const reference = measure(
        [&] {
          ReferenceAttention const no_kernels;
          subject.product();
        },
        options.seconds);
    if (options.json) {
      for (auto const& [what, m] : {std::pair{"gradient", gradient}, std::pair{"product", product}, std::pair{"reference", reference}}) {
        nlohmann::ordered_json row{
            {"what", fmt::format("hessian.{}", what)}, {"size", size.text()}, {"threads", threads()}, {"score", score}};
        add_to(row, m);
        out << row.dump() << '\n';
      }
    } else {
      out << fmt::format("{:<11} {:>11.2f} {:>8.1f} {:>10.2f} {:>11.2f} {:>8.1f} {:>11.2f} {:>13.2f} {:>8.1f}\n", score, gradient.median_ms,
                         megabytes(gradient.peak_bytes), product.median_ms, product.median_ms / gradient.median_ms,
                         megabytes(product.peak_bytes), static_cast<double>(product.peak_bytes) / static_cast<double>(gradient.peak_bytes),
                         reference.median_ms, megabytes(reference.peak_bytes));
    }
    out.flush();
  }
}

Declared<BenchTopic> const hessian_benchmark{
    {"hessian",
     "Hessian-vector product of a one-layer GPT: milliseconds and memory, relative to a gradient, and with the unfused reference attention",
     bench_hessian}};

}  // namespace

}  // namespace heed
