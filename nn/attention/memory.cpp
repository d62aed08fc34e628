#include "nn/attention/memory.hpp"

#include <algorithm>
#include <functional>
#include <vector>

#include "autograd/graph.hpp"
#include "autograd/memory.hpp"
#include "autograd/parallel.hpp"
#include "nn/attention/attention.hpp"

namespace heed {

namespace {

struct Extents {
  std::int64_t batch, heads, queries, keys;
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
  std::int64_t const width = e.heads * cost.shape.width;
  Parameters parameters(0, cost.dtype);
  auto const position = make_position(cost.position, Scope(parameters), {e.keys, width, e.heads});
  Attention const attention(Scope(parameters), cost.settings, {e.heads, cost.shape.width, e.keys}, cost.dropout, position.get());
  auto const some = [&](std::int64_t rows, std::int64_t size, char const* name) {
    return Tensor::normal({e.batch, rows, size}, Stream(0, name), cost.dtype).set_requires_grad();
  };
  Tensor const query = some(e.queries, width, "query"), key = some(e.keys, width, "key"),
               value = some(e.keys, e.heads * cost.value_width, "value");

  Choices choices;
  if (!mode.trains) choices.mode = Choices::Mode::expectation;
  std::vector<Tensor> seen;
  Observer observer;
  observer.attention = [&](std::string const&, AttentionView const& view) { seen.insert(seen.end(), {view.scores, view.weights}); };
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

AttentionBytes combined(AttentionBytes const& a, double factor, AttentionBytes const& b) {
  return {a.kept + factor * b.kept, a.peak + factor * b.peak};
}

/// The polynomial through the values of f at `nodes`, at x (Lagrange).
AttentionBytes extrapolated(std::vector<std::int64_t> const& nodes, std::int64_t x, std::function<AttentionBytes(std::int64_t)> const& f) {
  AttentionBytes result{0, 0};
  for (std::int64_t const node : nodes) {
    double weight = 1;
    for (std::int64_t const other : nodes)
      if (other != node) weight *= static_cast<double>(x - other) / static_cast<double>(node - other);
    result = combined(result, weight, f(node));
  }
  return result;
}

}  // namespace

AttentionBytes attention_bytes(AttentionCost const& cost, std::int64_t batch, std::int64_t queries, std::int64_t keys, bool recorded,
                               bool trains, bool watched) {
  Part const here("memory estimate");
  OneThread const one;
  auto const few = [](std::int64_t count) { return count <= 2 ? std::vector{count} : std::vector<std::int64_t>{1, 2}; };
  // The kernels work on blocks of 64 queries: shorter sequences lie on another curve.
  auto const lengths = keys <= 192 ? std::vector{keys} : std::vector<std::int64_t>{64, 128, 192};
  return extrapolated(few(batch), batch, [&](std::int64_t b) {
    return extrapolated(few(cost.shape.heads), cost.shape.heads, [&](std::int64_t h) {
      return extrapolated(lengths, keys, [&](std::int64_t m) {
        std::int64_t const n = queries == keys ? m : std::min(queries, m);
        return measured(cost, {b, h, n, m}, {recorded, trains, watched});
      });
    });
  });
}

}  // namespace heed
