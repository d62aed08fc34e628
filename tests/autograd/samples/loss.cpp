// Losses and dropout.

#include "tests/autograd/samples/operation_check.hpp"
#include "tests/engine.hpp"

namespace heed::test {

namespace {

Shape rows_of(Shape const& x) { return Shape(std::span(x.begin(), x.rank() - 1)); }

/// −Σ_c t_c log softmax(x)_c, the mean over the rows whose target is not −1.
Tensor composed_cross_entropy(Tensor const& logits, Tensor const& targets, double smoothing) {
  Index const classes = logits.size(-1);
  std::vector<double> distribution;
  for (Index const target : targets.data<std::int64_t>())
    for (Index c = 0; c < classes; ++c)
      distribution.push_back(target < 0 ? 0 : smoothing / static_cast<double>(classes) + (c == target ? 1 - smoothing : 0));
  auto const counted = targets.elements() - std::ranges::count(targets.data<std::int64_t>(), -1);
  Tensor const likelihoods = log_softmax(logits) * Tensor::of(distribution, logits.shape(), logits.dtype());
  return scale(sum(likelihoods), counted > 0 ? -1 / static_cast<double>(counted) : 0);
}

Sample cross_entropy_sample(double smoothing, std::vector<Index> const& values, SampleInput const& logits = {{2, 2, 6}}) {
  Tensor const targets = integers(values, rows_of(logits.shape));
  return {{logits},
          [=](Tensors const& x) { return cross_entropy(x[0], targets, smoothing); },
          [=](Tensors const& x) { return composed_cross_entropy(x[0], targets, smoothing); }};
}

/// The last two of six classes cannot be chosen: the loss of the others alone.
Sample masked_sample(double smoothing) {
  Tensor const targets = integers({1, -1, 3, 0}, {2, 2});
  std::vector<double> mask(6, 0);
  mask[4] = mask[5] = no_choice;
  return {{{{2, 2, 6}}},
          [=](Tensors const& x) { return cross_entropy(x[0] + Tensor::of(mask, {6}, x[0].dtype()), targets, smoothing); },
          [=](Tensors const& x) { return composed_cross_entropy(slice(x[0], -1, 0, 4), targets, smoothing); }};
}

/// In blocks, against whole logits: x and as many targets as it has rows; if some are ignored, two of three.
Sample linear_sample(Shape const& x, Index classes, double smoothing, bool biased, bool ignores = false) {
  std::vector<Index> values;
  for (Index i = 0; i < rows_of(x).elements(); ++i) values.push_back(ignores && i % 3 != 1 ? -1 : i * 7 % classes);
  Tensor const targets = integers(values, rows_of(x));
  std::vector<Shape> shapes{x, {classes, x[-1]}};
  if (biased) shapes.push_back({classes});
  auto const bias = [](Tensors const& in) { return in.size() > 2 ? in[2] : Tensor(); };
  auto const in_blocks = [=](Tensors const& in) {
    LogitsWithin const nothing(0);
    return linear_cross_entropy(in[0], in[1], bias(in), targets, smoothing);
  };
  return several(shapes, in_blocks, [=](Tensors const& in) { return cross_entropy(linear(in[0], in[1], bias(in)), targets, smoothing); });
}

Tensor plain(Tensor const& logits, Tensor const& targets) { return cross_entropy(logits, targets); }
Tensor plain_linear(Tensor const& x, Tensor const& weight, Tensor const& targets) { return linear_cross_entropy(x, weight, {}, targets); }

DeclaredChecks const loss_checks{{
    {"cross_entropy",
     {cross_entropy_sample(0, {1, -1, 5, 0}), cross_entropy_sample(0.1, {1, -1, 5, 0}), cross_entropy_sample(0, {-1, -1, -1, -1}),
      cross_entropy_sample(0, {3, 40}, {{2, 41}, {-30, 30}}), cross_entropy_sample(0.1, {0}, {{1, 1}}), masked_sample(0.1),
      masked_sample(0)},
     {fails("cross_entropy: target 3 at position 1 is not in [0, 3)", plain, zeros({2, 3}), integers({0, 3}, {2})),
      fails("cross_entropy: logits [2, 3], targets int64 [3]", plain, zeros({2, 3}), integers({0, 1, 2}, {3}))}},
    {"linear_cross_entropy",
     {linear_sample({2, 3, 4}, 6, 0, true), linear_sample({5, 3}, 4, 0.1, false), linear_sample({2, 4, 3}, 5, 0.1, true, true),
      linear_sample({258, 1}, 2, 0.1, true), linear_sample({4}, 19, 0, true), linear_sample({4}, 19, 0.1, false),
      linear_sample({1, 1}, 1, 0.1, true), linear_sample({1, 2}, 3, 0, true, true)},
     {fails("linear_cross_entropy: x [2, 3], weight [4, 5], bias none", plain_linear, zeros({2, 3}), zeros({4, 5}), integers({0, 1}, {2})),
      fails("linear_cross_entropy: target 4 at position 1 is not in [0, 4)", plain_linear, zeros({2, 3}), zeros({4, 3}),
            integers({0, 4}, {2}))}},
    {"dropout",
     {one({3, 14}, dropout, 0.4, Stream(1, "dropout")), one({3, 4}, dropout, 0, Stream(1, "dropout"))},
     {fails("dropout: the rate 1 is not in [0, 1)", dropout, zeros({2}), 1, Stream(1, "dropout"))}},
}};

}  // namespace

}  // namespace heed::test
