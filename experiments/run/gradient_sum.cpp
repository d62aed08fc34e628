#include "experiments/run/gradient_sum.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "autograd/graph.hpp"
#include "autograd/ops/elementwise.hpp"

namespace heed {

namespace {

/// The two halves of a range of at least two micro-batches.
std::pair<MicroBatches, MicroBatches> halves(MicroBatches const& range) {
  auto const half = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(range.size())) / 2);
  return {{range.first, range.first + half}, {range.first + half, range.end}};
}

void add_subtrees(MicroBatches const& range, MicroBatches const& part, std::vector<MicroBatches>& found) {
  if (part.holds(range)) {
    found.push_back(range);
  } else if (range.first < part.end && part.first < range.end) {
    auto const [left, right] = halves(range);
    add_subtrees(left, part, found);
    add_subtrees(right, part, found);
  }
}

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

MicroBatches part_of(std::int64_t count, std::int64_t rank, std::int64_t size) { return {rank * count / size, (rank + 1) * count / size}; }

std::vector<MicroBatches> subtrees(std::int64_t count, MicroBatches const& part) {
  std::vector<MicroBatches> found;
  add_subtrees({0, count}, part, found);
  return found;
}

void sum_by_tree(std::int64_t count, std::vector<MicroBatches> const& parts, std::function<void(std::size_t, std::size_t)> const& add) {
  std::function<std::size_t(MicroBatches const&)> const sum_up = [&](MicroBatches const& range) {
    if (auto const known = std::ranges::find(parts, range); known != parts.end()) return static_cast<std::size_t>(known - parts.begin());
    auto const [left, right] = halves(range);
    std::size_t const into = sum_up(left), from = sum_up(right);
    add(into, from);
    return into;
  };
  sum_up({0, count});
}

GradientSum::GradientSum(Parameters const& parameters, std::int64_t count, MicroBatches const& part)
    : parameters_(parameters.all()),
      part_(part),
      parts_(subtrees(count, part)),
      places_(static_cast<std::size_t>(part.size())),
      joined_(parameters_.size()) {
  for (auto const& range : parts_) find_places(range);
  for (auto const& [name, parameter] : parameters_) indices_.emplace(parameter.node().get(), indices_.size());
}

std::optional<std::size_t> GradientSum::index_of(Tensor const& leaf) const {
  auto const found = indices_.find(leaf.node().get());
  return found == indices_.end() ? std::nullopt : std::optional(found->second);
}

void GradientSum::find_places(MicroBatches const& range) {
  if (range.size() == 1) return;
  auto const place = [&](std::int64_t k) -> TreePlace& { return places_[static_cast<std::size_t>(k - part_.first)]; };
  auto const [left, right] = halves(range);
  if (range.size() == 2)
    place(range.first).second_follows = true;
  else
    ++place(range.end - 1).joins;
  find_places(left);
  find_places(right);
}

void GradientSum::join(std::size_t i) {
  if (joined_[i]) return;
  joined_[i] = true;
  Tensor parameter = parameters_[i].second;
  for (std::size_t k = 0; k < places_[done_].joins; ++k) {
    Tensor held = std::exchange(held_[held_.size() - 1 - k][i], {});
    if (held.defined()) parameter.set_grad(sum_of(std::move(held), parameter.grad()));
  }
}

void GradientSum::end_micro_batch() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) join(i);
  std::fill(joined_.begin(), joined_.end(), false);
  TreePlace const& place = places_[done_++];
  held_.resize(held_.size() - place.joins);
  if (place.second_follows || done_ == places_.size()) return;
  std::vector<Tensor> set;
  for (auto const& [name, each] : parameters_) {
    Tensor parameter = each;
    set.push_back(parameter.grad());
    parameter.clear_grad();
  }
  held_.push_back(std::move(set));
}

std::int64_t most_held(std::int64_t count) {
  return count <= 2 ? 0 : static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(count - 1))) - 1;
}

}  // namespace heed
