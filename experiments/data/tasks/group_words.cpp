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

#include "experiments/data/tasks/group.hpp"
#include "experiments/data/tasks/task.hpp"

namespace heed {

namespace {

using Permutation = std::vector<Index>;

Permutation identity(Index points) {
  Permutation result(static_cast<std::size_t>(points));
  std::iota(result.begin(), result.end(), 0);
  return result;
}

bool is_even(Permutation const& p) {
  Index inversions = 0;
  for (auto at = p.begin(); at != p.end(); ++at) inversions += std::count_if(at, p.end(), [&](Index later) { return later < *at; });
  return inversions % 2 == 0;
}

FiniteGroup with_products(std::vector<Permutation> elements) {
  FiniteGroup group{std::move(elements), {}};
  std::map<Permutation, Index> number;
  for (auto const& element : group.elements) number.emplace(element, std::ssize(number));
  for (auto const& g : group.elements)
    for (auto const& h : group.elements) {
      Permutation product;
      for (Index const x : h) product.push_back(g[static_cast<std::size_t>(x)]);
      group.products.push_back(number.at(product));
    }
  return group;
}

FiniteGroup cyclic(Index points) {
  std::vector<Permutation> rotations{identity(points)};
  for (Index i = 1; i < points; ++i) {
    rotations.push_back(rotations.back());
    std::rotate(rotations.back().begin(), rotations.back().begin() + 1, rotations.back().end());
  }
  return with_products(std::move(rotations));
}

FiniteGroup symmetric(Index points, bool even_alone = false) {
  std::vector<Permutation> found;
  auto next = identity(points);
  do {
    if (!even_alone || is_even(next)) found.push_back(next);
  } while (std::ranges::next_permutation(next).found);
  return with_products(std::move(found));
}

std::map<std::string, FiniteGroup> const& groups() {
  static std::map<std::string, FiniteGroup> const all{
      {"Z2", cyclic(2)}, {"Z60", cyclic(60)}, {"S3", symmetric(3)}, {"S5", symmetric(5)}, {"A5", symmetric(5, true)}};
  return all;
}

struct GroupWords : Task {
  std::string group = "S3";
  std::optional<Index> shortest;

  std::vector<Field> keys() override {
    return {field(&group, "group", "Z2 (parity), Z60, S3, A5 (60 elements), S5 (120)").one_of(group_names()), shortest_length()};
  }
  Field shortest_length() {
    return field(&shortest, "shortest", "training lengths are uniform between this and model.context (default: all have the context's)")
        .in(1, 1e6);
  }

  Index elements() const { return static_cast<Index>(finite_group(group).size()); }
  TaskSizes sizes() const override { return {.tokens = 1 + elements(), .shortest_context = shortest.value_or(1), .answers = elements()}; }

  void write(TaskRow const& row, Stream const& draws) const override {
    Index const context = std::ssize(row.inputs), min_length = row.held_out ? context : shortest.value_or(context);
    auto const size = static_cast<std::size_t>(min_length + draw_number(draws.child("length"), 0, context - min_length + 1));
    FiniteGroup const& chosen = finite_group(group);
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

std::vector<std::string> group_names() {
  std::vector<std::string> names;
  for (auto const& [name, group] : groups()) names.push_back(name);
  return names;
}

FiniteGroup const& finite_group(std::string const& name) { return groups().at(name); }

}  // namespace heed
