#include "experiments/train/gradient_sum.hpp"

#include "autograd/ops/elementwise.hpp"
#include "autograd/random.hpp"
#include "tests/gradients.hpp"

using namespace heed;

namespace {

using Set = std::vector<Tensor>;  // of each parameter; undefined: no gradient

constexpr std::size_t count = 3;

Parameters parameters() {
  Parameters made(1, DType::float32);
  for (std::size_t i = 0; i < count; ++i) made.add(fmt::format("p{}", i), {40}, Initial::constant(0), WeightDecay::off);
  return made;
}

/// What micro-batch k gives: parameter 1 has a gradient of every third one alone, parameter 2 of none.
Set gradients_of(Index k) {
  Set set(count);
  set[0] = Tensor::normal({40}, Stream(2, fmt::format("{}", k)), DType::float32);
  if (k % 3 == 1) set[1] = Tensor::normal({40}, Stream(3, fmt::format("{}", k)), DType::float32);
  return set;
}

Set sum(Set const& a, Set const& b) {
  Set result(count);
  for (std::size_t i = 0; i < count; ++i) result[i] = !a[i].defined() ? b[i] : !b[i].defined() ? a[i] : add(a[i], b[i]);
  return result;
}

/// The tree by its definition.
Set by_definition(Index first, Index end) {
  if (end - first == 1) return gradients_of(first);
  Index half = 1;
  while (2 * half < end - first) half *= 2;
  return sum(by_definition(first, first + half), by_definition(first + half, end));
}

/// Most sets of gradients that are held besides the parameters' own, if one part is all micro-batches: none for two of them.
Index max_held(Index all) { return all <= 2 ? 0 : static_cast<Index>(std::bit_width(static_cast<std::uint64_t>(all - 1))) - 1; }

/// The sums of its subtrees that a process which makes one part has.
std::vector<Set> sums_of(Index all, MicroBatches const& part) {
  Parameters made = parameters();
  GradientSum together(made, all, part);
  for (Index k = part.first; k < part.end; ++k) {
    Set const gradients = gradients_of(k);
    for (std::size_t i = 0; i < count; ++i) {
      Tensor p = made.all()[i].second;
      if (gradients[i].defined()) p.set_grad(p.grad().defined() ? add(p.grad(), gradients[i]) : gradients[i]);  // as a walk does
    }
    together.end_micro_batch();
    CHECK(std::ssize(together.sums()) <= 1 + std::max<Index>(max_held(all), std::ssize(subtrees(all, part))));
  }
  return together.sums();
}

}  // namespace

TEST_SUITE("gradient_sum") {
  TEST_CASE("any number of processes that divides the micro-batches has the same bits") {
    for (Index all = 1; all <= 12; ++all)
      for (Index size = 1; size <= all; ++size) {
        if (all % size != 0) continue;
        INFO("all ", all, ", size ", size);
        std::vector<Index> parts;
        std::vector<Set> sums;
        for (Index rank = 0; rank < size; ++rank) {
          auto const part = part_of(all, rank, size);
          std::ranges::copy(subtrees(all, part), std::back_inserter(parts));
          std::ranges::copy(sums_of(all, part), std::back_inserter(sums));
          REQUIRE(sums.size() == parts.size());
        }
        sum_by_tree(all, parts, [&](std::size_t into, std::size_t from) { sums[into] = sum(sums[into], sums[from]); });
        test::check_agree(sums[0], by_definition(0, all), 0);
      }
  }

  TEST_CASE("parts are the largest subtrees") {
    using Firsts = std::vector<Index>;
    CHECK(subtrees(8, {4, 8}) == Firsts{4});
    CHECK(subtrees(6, {0, 6}) == Firsts{0});
    CHECK(subtrees(6, {2, 4}) == Firsts{2});
    for (Index const all : {6, 12}) CHECK(subtrees(all, {3, 6}) == Firsts{3, 4});
  }
}
