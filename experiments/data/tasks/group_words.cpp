// Words over a finite group: at each position the product of all elements so far. Parity is that of the group of two elements:
//
//     inputs    1 0 1 1 0 1          random bits
//     targets   1 1 0 1 1 0          their sum modulo 2
//
// State tracking: every token changes what is to be remembered. A linear recurrence whose eigenvalues are all positive cannot do parity at
// every length (Grazzi et al. 2024); A5 and S5, which are not solvable, neither a Transformer nor a recurrence with diagonal transitions of
// a fixed depth (Merrill et al. 2024; unless TC⁰ = NC¹). The smallest loss is 0, that of guessing ln |G|.
//
// Token 0 is a blank; element g is token 1 + g.

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "experiments/data/tasks/group.hpp"
#include "experiments/data/tasks/task.hpp"

namespace heed {

namespace {

using Permutation = std::vector<Index>;

/// First h, then g.
Permutation composed(Permutation const& g, Permutation const& h) {
  return mapped(h, [&](Index x) { return at(g, x); });
}

FiniteGroup generated_by(std::vector<Permutation> const& generators) {
  std::set<Permutation> all;
  for (std::vector<Permutation> open = generators; !open.empty();) {
    auto const element = open.back();
    open.pop_back();
    if (!all.insert(element).second) continue;
    for (auto const& generator : generators) open.push_back(composed(generator, element));
  }
  FiniteGroup group{{all.begin(), all.end()}, {}};
  for (auto const& g : all)
    for (auto const& h : all) group.products.push_back(std::ranges::lower_bound(group.elements, composed(g, h)) - group.elements.begin());
  return group;
}

/// 0 → 1 → 2 … → 0.
Permutation turn(std::size_t points) {
  Permutation next(points);
  std::iota(next.begin(), next.end(), 1);
  next.back() = 0;
  return next;
}

struct GroupWords : Task {
  std::string group = "S3";
  std::optional<Index> shortest;

  std::vector<Field> keys() override {
    return {field(&group, "group", "Z2 (parity), Z60, S3, A5 (60 elements), S5 (120)")
                .one_of(mapped(finite_groups(), &std::pair<std::string const, FiniteGroup>::first)),
            shortest_length()};
  }
  Field shortest_length() {
    return field(&shortest, "shortest", "training lengths are uniform between this and model.context (default: all have the context's)")
        .in(1, 1e6);
  }

  Index elements() const { return static_cast<Index>(finite_groups().at(group).size()); }
  TaskSizes sizes() const override { return {.tokens = 1 + elements(), .shortest_context = shortest.value_or(1), .answers = elements()}; }

  void write(TaskRow const& row, Stream const& draws) const override {
    Index const context = std::ssize(row.inputs), min_length = row.held_out ? context : shortest.value_or(context);
    auto const size = static_cast<std::size_t>(min_length + draw_number(draws.child("length"), 0, context - min_length + 1));
    FiniteGroup const& chosen = finite_groups().at(group);
    std::size_t product = 0;
    for (std::size_t i = 0; i < size; ++i) {
      auto const next = static_cast<std::size_t>(draw_number(draws.child("elements"), i, elements()));
      product = chosen.product(product, next);
      row.inputs[i] = 1 + static_cast<Index>(next);
      row.targets[i] = 1 + static_cast<Index>(product);
    }
  }
};

struct Parity : GroupWords {
  Parity() { group = "Z2"; }
  std::vector<Field> keys() override { return {shortest_length()}; }
};

Declared<DataKind> const group_words_data{task_kind<GroupWords>("group_words", "words over a finite group: predict the product so far")};
Declared<DataKind> const parity_data{task_kind<Parity>("parity", "random bits: predict the parity of all so far")};

}  // namespace

std::map<std::string, FiniteGroup> const& finite_groups() {
  static std::map<std::string, FiniteGroup> const all{{"Z2", generated_by({turn(2)})},
                                                      {"Z60", generated_by({turn(60)})},
                                                      {"S3", generated_by({{1, 0, 2}, turn(3)})},
                                                      {"S5", generated_by({{1, 0, 2, 3, 4}, turn(5)})},
                                                      {"A5", generated_by({{1, 2, 0, 3, 4}, turn(5)})}};
  return all;
}

}  // namespace heed
