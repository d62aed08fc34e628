#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/parallel.hpp"
#include "experiments/bench/bench.hpp"
#include "experiments/bench/gpt_subject.hpp"
#include "experiments/bench/measure.hpp"

namespace heed {

namespace {

/// A size that grows, and its values. `recompute`: the same sizes once more with train.recompute.
struct SizeAxis {
  std::string name;
  std::vector<std::int64_t> values;
  void (*grow)(GptSize& size, std::int64_t value);
  bool recompute = false;
};

std::vector<SizeAxis> const size_axes{
    {"tokens",
     {64, 128, 256, 512, 1024, 2048, 4096, 8192},
     [](GptSize& s, std::int64_t value) { s.context = s.tokens = value, s.batch = 1; }},
    {"width", {64, 128, 256, 512, 1024}, [](GptSize& s, std::int64_t value) { s.width = value; }},
    {"layers", {1, 2, 4, 8, 16}, [](GptSize& s, std::int64_t value) { s.layers = value; }, true},
    {"vocabulary", {64, 512, 4096, 32768}, [](GptSize& s, std::int64_t value) { s.vocabulary = value; }},
};

struct SizePoint {
  double size, milliseconds, bytes;
};

/// The exponent p of y ~ sizeᵖ: the slope of least squares through the logarithms of the larger half of the sizes.
double exponent(std::vector<SizePoint> const& points, double SizePoint::*y) {
  auto const half = std::vector<SizePoint>(points.end() - static_cast<std::ptrdiff_t>((points.size() + 1) / 2), points.end());
  double mean_x = 0, mean_y = 0;
  for (auto const& p : half) mean_x += std::log(p.size), mean_y += std::log(p.*y);
  mean_x /= static_cast<double>(half.size());
  mean_y /= static_cast<double>(half.size());
  double both = 0, square = 0;
  for (auto const& p : half) {
    both += (std::log(p.size) - mean_x) * (std::log(p.*y) - mean_y);
    square += (std::log(p.size) - mean_x) * (std::log(p.size) - mean_x);
  }
  return both / square;
}

class Printer {
 public:
  Printer(BenchOptions const& options, std::ostream& out) : json_(options.json), out_(out) {
    if (json_) return;
    out_ << fmt::format(
        "a training step of a GPT (2 layers, 4 heads, width 128, 4 x 128 tokens, vocabulary 65; one of them grows, tokens in one row), "
        "{}\n\n",
        threads_in_words());
    out_ << fmt::format("{:<22} {:>8} {:>10} {:>10} {:>10} {:>9} {:>9}\n", "what grows", "to", "median ms", "min", "max", "GFLOP/s",
                        "pool MB");
  }

  void point(std::string const& axis, std::int64_t value, bool recompute, Measurement const& m) {
    if (json_) {
      line({{"what", "scaling"},
            {"axis", axis},
            {"size", value},
            {"recompute", recompute},
            {"threads", threads()},
            {"median_ms", m.median_ms},
            {"min_ms", m.min_ms},
            {"max_ms", m.max_ms},
            {"gflops", m.gflops()},
            {"peak_mb", megabytes(m.peak_bytes)}});
    } else {
      out_ << fmt::format("{:<22} {:>8} {:>10.2f} {:>10.2f} {:>10.2f} {:>9.1f} {:>9.1f}\n", name(axis, recompute), value, m.median_ms,
                          m.min_ms, m.max_ms, m.gflops(), megabytes(m.peak_bytes));
    }
    out_.flush();
  }

  void fit(std::string const& axis, bool recompute, std::vector<SizePoint> const& points) {
    double const time = exponent(points, &SizePoint::milliseconds);
    double const memory = exponent(points, &SizePoint::bytes);
    if (json_) {
      line({{"what", "exponent"}, {"axis", axis}, {"recompute", recompute}, {"threads", threads()}, {"time", time}, {"memory", memory}});
    } else {
      out_ << fmt::format("{:<22} time ~ {}^{:.2f}, memory ~ {}^{:.2f} over the larger half\n\n", "", axis, time, axis, memory);
    }
  }

  void price(std::string const& axis, std::vector<SizePoint> const& kept, std::vector<SizePoint> const& again) {
    double const time = again.back().milliseconds / kept.back().milliseconds;
    double const memory = again.back().bytes / kept.back().bytes;
    if (json_) {
      line({{"what", "recompute"}, {"axis", axis}, {"size", kept.back().size}, {"threads", threads()}, {"time", time}, {"memory", memory}});
    } else {
      out_ << fmt::format("train.recompute at {:.0f} {}: {:.2f} x the time, {:.2f} x the memory\n\n", kept.back().size, axis, time, memory);
    }
  }

 private:
  static std::string name(std::string const& axis, bool recompute) { return recompute ? axis + ", recomputed" : axis; }
  void line(nlohmann::ordered_json const& row) { out_ << row.dump() << '\n'; }

  bool json_;
  std::ostream& out_;
};

std::vector<SizePoint> measured(SizeAxis const& axis, bool recompute, double seconds, Printer& printer) {
  std::vector<SizePoint> points;
  for (auto const value : axis.values) {
    GptSize size{"", 2, 4, 128, 128, 4, 128, 65};
    axis.grow(size, value);
    reset_resident_peak();
    GptSubject subject(size, recompute);
    auto const m = measure([&] { subject.train(); }, seconds);
    printer.point(axis.name, value, recompute, m);
    points.push_back({static_cast<double>(value), m.median_ms, static_cast<double>(m.peak_bytes)});
  }
  printer.fit(axis.name, recompute, points);
  return points;
}

void bench_scaling(BenchOptions const& options, std::ostream& out) {
  std::vector<std::string> names;
  for (auto const& axis : size_axes) names.push_back(axis.name);
  for (auto const& name : options.names) expect_known("bench scaling", name, names);
  Printer printer(options, out);
  for (auto const& axis : size_axes) {
    if (!options.names.empty() && std::ranges::find(options.names, axis.name) == options.names.end()) continue;
    auto const kept = measured(axis, false, options.seconds, printer);
    if (axis.recompute) printer.price(axis.name, kept, measured(axis, true, options.seconds, printer));
  }
}

Declared<BenchTopic> const scaling_benchmark{
    {"scaling",
     "a training step as tokens, width, layers and vocabulary grow, with the exponents of time and memory; the price of recomputation",
     bench_scaling}};

}  // namespace

}  // namespace heed
