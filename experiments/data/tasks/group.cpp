#include "experiments/data/tasks/group.hpp"

#include <algorithm>
#include <map>
#include <numeric>

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

}  // namespace

std::vector<std::string> group_names() {
  std::vector<std::string> names;
  for (auto const& [name, group] : groups()) names.push_back(name);
  return names;
}

FiniteGroup const& finite_group(std::string const& name) { return groups().at(name); }

}  // namespace heed
