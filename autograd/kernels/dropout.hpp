#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "autograd/random.hpp"

namespace heed::kernels {

/// out[k] = 0 with probability `rate`, else x[k]/(1 − rate), for n elements; out may be x. Of element i = first + k decides word i mod 4 of
/// the stream's draw ⌊i/4⌋: four elements share a draw, which costs more than all else here.
template <class T>
void dropout_row(double rate, Stream const& stream, std::uint64_t first, T const* x, T* out, std::int64_t n) {
  auto const threshold = static_cast<std::uint32_t>(std::min(std::ceil(std::ldexp(rate, 32)), 0x1p32 - 1));
  T const factor = static_cast<T>(1 / (1 - rate));
  alignas(64) std::array<std::uint32_t, 256> words;
  while (n > 0) {
    auto const before = static_cast<std::int64_t>(first % 4);
    std::int64_t const count = std::min(n, std::ssize(words) - before);
    stream.words(first / 4, {words.data(), static_cast<std::size_t>((before + count + 3) / 4 * 4)});
    std::uint32_t const* const word = words.data() + before;
    for (std::int64_t k = 0; k < count; ++k) out[k] = word[k] < threshold ? T(0) : x[k] * factor;
    first += static_cast<std::uint64_t>(count), x += count, out += count, n -= count;
  }
}

}  // namespace heed::kernels
