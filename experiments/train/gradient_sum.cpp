#include "experiments/train/gradient_sum.hpp"

#include <algorithm>
#include <utility>

#include "autograd/graph.hpp"
#include "autograd/ops/elementwise.hpp"

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

}  // namespace heed
