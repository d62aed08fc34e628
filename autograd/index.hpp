#pragma once

#include <cstddef>
#include <cstdint>

namespace heed {

/// A number of elements, rows or steps, or the place of one.
using Index = std::int64_t;

/// v[i]: the containers of the standard library count without signs.
template <class Container>
[[gnu::always_inline]] constexpr decltype(auto) at(Container&& v, Index i) {
  return v[static_cast<std::size_t>(i)];
}

inline double to_double(Index count) { return static_cast<double>(count); }

}  // namespace heed
