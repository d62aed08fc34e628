#pragma once

#include <map>
#include <string>
#include <vector>

#include "autograd/index.hpp"

namespace heed {

/// A finite group of permutations. Its elements are numbered in lexicographic order; 0 is the identity.
struct FiniteGroup {
  std::vector<std::vector<Index>> elements;  ///< element g sends point x to elements[g][x]
  std::vector<Index> products;               ///< g·h at g·size + h: first h, then g

  std::size_t size() const { return elements.size(); }
  std::size_t product(std::size_t g, std::size_t h) const { return static_cast<std::size_t>(products[g * size() + h]); }
};

/// Z2, Z60 (rotations), S3, S5 (all permutations), A5 (the even ones of S5).
std::map<std::string, FiniteGroup> const& finite_groups();

}  // namespace heed
