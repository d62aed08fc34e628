#include "experiments/bench/model_row.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/blas/products.hpp"
#include "autograd/parallel.hpp"
#include "experiments/bench/measure.hpp"

namespace heed {

void write_model_heading(std::string const& title, BenchOptions const& options, std::ostream& out) {
  if (options.json) return;
  out << fmt::format("{}, factors of products {}, {}: median of {:g} s each\n\n", title, factors_in_words(), threads_in_words(),
                     options.seconds);
  out << fmt::format("{:<6} {:<8} {:>10} {:>10} {:>10} {:>10} {:>8} {:>8} {:>8} {:>9} {:>12}\n", "size", "what", "median ms", "min", "max",
                     "tokens/s", "GFLOP", "GFLOP/s", "of peak", "pool MB", "resident MB");
}

void measure_model(ModelWork const& work, BenchOptions const& options, std::ostream& out) {
  auto const m = measure_time(work.run, options.seconds);
  auto const resident = resident_peak();
  double const tokens_per_second = 1e3 * work.tokens / m.median_ms;
  auto const [peak, share] = share_of_peak(work.run, m.product_gflop, options.seconds);
  if (options.json) {
    nlohmann::ordered_json row{{"what", work.what},
                               {"size", work.size},
                               {"threads", threads()},
                               {"library", matrix_library()},
                               {"precision", products().bfloat16 ? "bfloat16" : "float32"},
                               {"recompute", work.recompute},
                               {"median_ms", m.median_ms},
                               {"min_ms", m.min_ms},
                               {"max_ms", m.max_ms},
                               {"repetitions", m.repetitions},
                               {"tokens_per_second", tokens_per_second},
                               {"gflop", m.product_gflop},
                               {"gflops", m.gflops()},
                               {"peak_gflops", peak},
                               {"share_of_peak", share},
                               {"pool_mb", megabytes(m.peak_bytes)},
                               {"peak_mb", megabytes(resident)}};
    if (work.critical_path) row["critical_path"] = *work.critical_path;
    out << row.dump() << '\n';
  } else {
    out << fmt::format("{:<6} {:<8} {:>10.2f} {:>10.2f} {:>10.2f} {:>10.0f} {:>8.3f} {:>8.1f} {:>7.1f}% {:>9.1f} {:>12.1f}\n", work.size,
                       work.what, m.median_ms, m.min_ms, m.max_ms, tokens_per_second, m.product_gflop, m.gflops(), 100 * share,
                       megabytes(m.peak_bytes), megabytes(resident));
    if (work.critical_path) out << fmt::format("critical path of the loss: {} operations\n", *work.critical_path);
  }
  out.flush();
}

}  // namespace heed
