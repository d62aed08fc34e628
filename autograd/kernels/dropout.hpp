#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "autograd/random.hpp"

namespace heed::kernels {

/// out[k] = 0 where stream.uniform(first + k) < rate, else x[k]/(1 − rate), for n elements; out may be x.
template <class T>
void dropout_row(double rate, Stream const& stream, std::uint64_t first, T const* x, T* out, std::int64_t n) {
  // A uniform number is the upper 53 of 64 bits: it is below the rate if the whole word is below this one.
  auto const threshold = static_cast<std::uint64_t>(std::ceil(std::ldexp(rate, 53))) << 11;
  T const factor = static_cast<T>(1 / (1 - rate));
  alignas(64) std::array<std::uint64_t, 64> bits;
  for (std::int64_t begin = 0; begin < n; begin += 64) {
    auto const count = static_cast<std::size_t>(std::min<std::int64_t>(n - begin, 64));
    stream.bits(first + static_cast<std::uint64_t>(begin), {bits.data(), count});
    for (std::size_t k = 0; k < count; ++k)
      out[begin + static_cast<std::int64_t>(k)] = bits[k] < threshold ? T(0) : x[begin + static_cast<std::int64_t>(k)] * factor;
  }
}

}  // namespace heed::kernels
