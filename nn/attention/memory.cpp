#include "nn/attention/memory.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "autograd/attention/row_statistics.hpp"
#include "autograd/graph.hpp"
#include "autograd/memory.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/parallel.hpp"
#include "nn/attention/attention.hpp"

namespace heed {

namespace {

struct Extents {
  std::int64_t batch, heads, queries, keys, width, value_width;
};
struct Mode {
  bool recorded, trains, watched;
};

/// While it lives, the engine has one thread: how many kernels are at work at once, each with a block of scores, would be chance.
class OneThread {
 public:
  OneThread() : before_(threads()) { set_threads(1); }
  ~OneThread() { set_threads(before_); }
  OneThread(OneThread const&) = delete;
  OneThread& operator=(OneThread const&) = delete;

 private:
  int before_;
};

/// Runs one call and, if it is recorded, its gradient.
AttentionBytes measured(AttentionCost const& cost, Extents const& e, Mode const& mode) {
  std::int64_t const width = e.heads * e.width;
  Parameters parameters(0, cost.dtype);
  // A trained context of 1: `fire` is counted as it runs beyond its threshold, where it takes more, for training moves the threshold.
  auto const position = make_position(cost.position, Scope(parameters), {1, width, e.heads});
  Attention const attention(Scope(parameters), cost.settings, {e.heads, e.width, e.keys}, cost.dropout, position.get());
  auto const some = [&](std::int64_t rows, std::int64_t size, char const* name) {
    return Tensor::normal({e.batch, rows, size}, Stream(0, name), cost.dtype).set_requires_grad();
  };
  Tensor const query = some(e.queries, width, "query"), key = some(e.keys, width, "key"),
               value = some(e.keys, e.heads * e.value_width, "value");

  Choices choices;
  if (!mode.trains) choices.mode = Choices::Mode::expectation;
  AttentionRecorder recorder({.weights = true, .scores = mode.recorded, .rows = true});
  Observer const observer{.attention = &recorder};
  Pass pass;
  pass.choices = &choices;
  if (mode.trains) pass.noise = Stream(0, "noise");
  if (mode.watched) pass.observer = &observer;

  Recording const recorded(mode.recorded);
  double const before = static_cast<double>(memory_use().live);
  reset_memory_peak();
  Tensor context = attention(query, key, value, {.causal = cost.causal, .lengths = {}, .offset = 0}, pass);
  double const kept = static_cast<double>(memory_use().live) - before;
  if (mode.recorded) {
    Tensor total = sum(context);
    for (auto const& made : choices.made) total = total + sum(log(made.probability)) + sum(made.entropy);
    total.backward();
  }
  return {kept, static_cast<double>(memory_use().peak) - before};
}

/// The polynomial through values at evenly spaced nodes, `steps` of them after the first (Newton). A curvature of less than a thousandth
/// is that of sizes rounded up to cache lines, and would be blown up: it counts as none.
double newton(std::vector<double> const& values, double steps) {
  if (values.size() == 1) return values[0];
  if (values.size() == 2) return values[0] + steps * (values[1] - values[0]);
  double curvature = values[2] - 2 * values[1] + values[0];
  if (std::abs(curvature) < 1e-3 * std::abs(values[2])) curvature = 0;
  return values[0] + steps * (values[2] - values[0] - curvature) / 2 + steps * (steps - 1) / 2 * curvature;
}

/// What f gives at x, by its values at one, two or three evenly spaced `nodes`.
AttentionBytes extrapolated(std::vector<std::int64_t> const& nodes, std::int64_t x, std::function<AttentionBytes(std::int64_t)> const& f) {
  std::vector<double> kept, peak;
  for (std::int64_t const node : nodes) {
    AttentionBytes const bytes = f(node);
    kept.push_back(bytes.kept);
    peak.push_back(bytes.peak);
  }
  double const steps = nodes.size() == 1 ? 0 : static_cast<double>(x - nodes[0]) / static_cast<double>(nodes[1] - nodes[0]);
  return {newton(kept, steps), newton(peak, steps)};
}

}  // namespace

AttentionBytes attention_bytes(AttentionCost const& cost, std::int64_t batch, std::int64_t queries, std::int64_t keys, bool recorded,
                               bool trains, bool watched) {
  Part const here("memory estimate");
  OneThread const one;
  auto const few = [](std::int64_t count) { return count <= 2 ? std::vector{count} : std::vector<std::int64_t>{1, 2}; };
  // The kernels work on blocks of 64 queries: shorter sequences lie on another curve.
  auto const lengths = keys <= 192 ? std::vector{keys} : std::vector<std::int64_t>{64, 128, 192};
  std::int64_t const width = cost.shape.width;
  auto const widths = width <= 192 ? std::vector{width} : std::vector<std::int64_t>{128, 192};
  return extrapolated(few(batch), batch, [&](std::int64_t b) {
    return extrapolated(few(cost.shape.heads), cost.shape.heads, [&](std::int64_t h) {
      return extrapolated(lengths, keys, [&](std::int64_t m) {
        return extrapolated(widths, width, [&](std::int64_t d) {
          std::int64_t const n = queries == keys ? m : lengths.size() == 1 ? queries : std::min(queries, m);
          std::int64_t const of_value = std::max<std::int64_t>(1, cost.value_width * d / width);
          return measured(cost, {b, h, n, m, d, of_value}, {recorded, trains, watched});
        });
      });
    });
  });
}

}  // namespace heed
