#include "experiments/train/gradient_sum.hpp"

#include <algorithm>
#include <utility>

#include "autograd/graph.hpp"
#include "autograd/ops/elementwise.hpp"
#include "experiments/train/ranks.hpp"

namespace heed {

namespace {

/// a + b; an undefined one counts as zero. In place if nothing else holds a.
Tensor sum_of(Tensor a, Tensor const& b) {
  if (!a.defined()) return b;
  if (!b.defined()) return a;
  if (a.sole_owner()) {
    kernels::add_in_place(a, b);
    return a;
  }
  NoGrad const no_grad;
  return add(a, b);
}

/// Gradients of at least this size are exchanged together.
constexpr std::size_t group_bytes = std::size_t{4} << 20;

/// The numbers of x that rank `rank` sums.
Tensor share(Tensor const& x, Index rank) {
  MicroBatches const numbers = part_of(x.elements(), rank, ranks().size());
  return x.viewed({x.elements()}).rows(numbers.first, numbers.end - numbers.first);
}

/// Sums gradients of all ranks: each rank gets its share of each from all others, sums it by the tree, and sends the sum to all. `own`: of
/// each gradient, the sums of this rank's subtrees. Returns the sums.
std::vector<Tensor> summed_by_shares(std::vector<std::vector<Tensor>> const& own, Index count) {
  std::vector<Index> all;
  std::vector<Sent> sent;
  std::vector<Received> received;
  std::vector<std::vector<Tensor>> shares(own.size());
  for (Index rank = 0; rank < ranks().size(); ++rank) {
    auto const theirs = subtrees(count, part_of(count, rank, ranks().size()));
    all.insert(all.end(), theirs.begin(), theirs.end());
    for (std::size_t i = 0; i < own.size(); ++i) {
      for (Tensor const& sum : own[i]) sent.push_back({rank, bytes_in(share(sum, rank))});
      for (std::size_t k = 0; k < theirs.size(); ++k) {
        Tensor const& made = shares[i].emplace_back(share(own[i][0], ranks().rank()).shape(), own[i][0].dtype());
        received.push_back({rank, writable_bytes_in(made)});
      }
    }
  }
  ranks().exchange(sent, received);
  sent.clear(), received.clear();
  std::vector<Tensor> sums;
  for (std::size_t i = 0; i < own.size(); ++i) {
    sum_by_tree(count, all, [&](std::size_t into, std::size_t from) { kernels::add_in_place(shares[i][into], shares[i][from]); });
    Tensor const& sum = sums.emplace_back(own[i][0].shape(), own[i][0].dtype());
    for (Index rank = 0; rank < ranks().size(); ++rank) {
      sent.push_back({rank, bytes_in(shares[i][0])});
      received.push_back({rank, writable_bytes_in(share(sum, rank))});
    }
  }
  ranks().exchange(sent, received);
  return sums;
}

}  // namespace

MicroBatches part_of(Index count, Index rank, Index size) { return {rank * count / size, (rank + 1) * count / size}; }

std::vector<Index> subtrees(Index count, MicroBatches const& part) {
  std::vector<Index> found;
  for (Index first = part.first, size = 1; first < part.end; first += size, size = 1) {
    found.push_back(first);
    while (size < count && first % (2 * size) == 0 && std::min(first + 2 * size, count) <= part.end) size *= 2;
  }
  return found;
}

void sum_by_tree(Index count, std::vector<Index> const& subtrees, std::function<void(std::size_t, std::size_t)> const& add) {
  auto const index_of = [&](Index first) { return static_cast<std::size_t>(std::ranges::find(subtrees, first) - subtrees.begin()); };
  for (Index half = 1; half < count; half *= 2)
    for (Index first = 0; first + half < count; first += 2 * half)
      if (std::size_t const from = index_of(first + half); from < subtrees.size()) add(index_of(first), from);
}

void GradientSum::end_micro_batch() {
  std::size_t const left = subtrees(count_, {part_.first, ++made_}).size();
  for (; held_.size() >= left; held_.pop_back()) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      Tensor parameter = parameters_[i].second;
      parameter.set_grad(sum_of(std::move(held_.back()[i]), parameter.grad()));
    }
  }
  bool const first_of_pair = made_ % 2 == 1;  // the second one's backward() adds to its gradients
  if (first_of_pair || made_ == part_.end) return;
  held_ = sums();
  for (auto const& [name, each] : parameters_) Tensor(each).clear_grad();
}

std::vector<std::vector<Tensor>> GradientSum::sums() const {
  std::vector<std::vector<Tensor>> sums = held_;
  sums.emplace_back();
  for (auto const& [name, parameter] : parameters_) sums.back().push_back(parameter.grad());
  return sums;
}

Counts counts_of_all(Counts const& own) {
  std::vector<double> numbers = own.targets;
  numbers.push_back(own.rows);
  Counts sum;
  for (auto& of : ranks().gathered(numbers)) {
    double const rows = of.back();
    of.pop_back();
    sum += Counts{of, rows};
  }
  return sum;
}

std::vector<double> largest_of_all(std::vector<double> own) {
  for (auto const& of : ranks().gathered(own))
    for (std::size_t i = 0; i < own.size(); ++i) own[i] = std::max(own[i], of[i]);
  return own;
}

void sum_over_ranks(GradientSum const& own, StepResults& results) {
  auto const& parameters = own.parameters();
  auto const sums = own.sums();
  std::vector<double> numbers = results.losses;
  numbers.push_back(results.tokens);
  for (std::size_t i = 0; i < parameters.size(); ++i)
    numbers.push_back(std::ranges::any_of(sums, [&](auto const& set) { return set[i].defined(); }) ? 1 : 0);
  std::size_t const losses = results.losses.size();
  results = {};
  std::vector<bool> present(parameters.size());
  for (auto const& of : ranks().gathered(numbers)) {
    results.losses.insert(results.losses.end(), of.begin(), of.begin() + static_cast<std::ptrdiff_t>(losses));
    results.tokens += of[losses];
    for (std::size_t i = 0; i < present.size(); ++i) present[i] = present[i] || of[losses + 1 + i] > 0;
  }

  for (std::size_t begin = 0, end = 0; begin < parameters.size(); begin = end) {
    std::vector<Tensor> group;
    std::vector<std::vector<Tensor>> gradients;
    for (std::size_t bytes = 0; end < parameters.size() && bytes < group_bytes; ++end) {
      Tensor const& parameter = parameters[end].second;
      if (!present[end]) continue;
      group.push_back(parameter);
      gradients.emplace_back();
      for (auto const& set : sums)  // −0 leaves every number unchanged when added to it
        gradients.back().push_back(set[end].defined() ? set[end] : Tensor::full(parameter.shape(), -0.0, parameter.dtype()));
      bytes += bytes_in(parameter).size();
    }
    auto summed = summed_by_shares(gradients, own.count());
    for (std::size_t i = 0; i < group.size(); ++i) group[i].set_grad(std::move(summed[i]));
  }
}

}  // namespace heed
