#include "autograd/random.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include <Random123/philox.h>

#include "autograd/error.hpp"

namespace heed {

namespace {

using Philox = r123::Philox4x32_R<10>;

/// The four 32-bit words of block i under the stream's key.
Philox::ctr_type block_of(std::uint64_t key, std::uint64_t i) {
  Philox::ctr_type const counter = {{static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i >> 32), 0, 0}};
  Philox::key_type const words = {{static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)}};
  return Philox()(counter, words);
}

/// Draw i: the block's words as two of 64 bits.
std::pair<std::uint64_t, std::uint64_t> draw(std::uint64_t key, std::uint64_t i) {
  auto const block = block_of(key, i);
  return {std::uint64_t{block[1]} << 32 | block[0], std::uint64_t{block[3]} << 32 | block[2]};
}

/// SplitMix64's finaliser: spreads a change of one bit over the whole word.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

/// FNV-1a over the name, started from the parent's key, then mixed.
std::uint64_t derive(std::uint64_t key, std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325U ^ mix(key + 0x9e3779b97f4a7c15U);
  for (char const c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return mix(hash);
}

double unit(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

}  // namespace

Stream::Stream(std::uint64_t seed, std::string_view purpose) : key_(derive(mix(seed), purpose)) {}

Stream Stream::child(std::string_view name) const { return Stream(derive(key_, name)); }

Stream Stream::child(std::uint64_t index) const { return Stream(mix(key_ + 0x9e3779b97f4a7c15U * (index + 1))); }

std::uint64_t Stream::bits(std::uint64_t i) const { return draw(key_, i).first; }

double Stream::uniform(std::uint64_t i) const { return unit(bits(i)); }

double Stream::normal(std::uint64_t i) const {
  auto const [a, b] = draw(key_, i);
  return std::sqrt(-2 * std::log(1 - unit(a))) * std::cos(2 * std::numbers::pi * unit(b));
}

// Sixteen blocks at a time, in loops that compilers turn into vector instructions; the same words as block_of, which tests hold them
// against.
void Stream::words(std::uint64_t first, std::span<std::uint32_t> out) const {
  constexpr std::size_t lanes = 16;
  using Lanes = std::array<std::uint32_t, lanes>;
  std::size_t done = 0;
  for (; done + 4 * lanes <= out.size(); done += 4 * lanes, first += lanes) {
    Lanes a, b, c{}, d{};
    for (std::size_t k = 0; k < lanes; ++k)
      a[k] = static_cast<std::uint32_t>(first + k), b[k] = static_cast<std::uint32_t>((first + k) >> 32);
    auto key0 = static_cast<std::uint32_t>(key_), key1 = static_cast<std::uint32_t>(key_ >> 32);
    for (int round = 0; round < 10; ++round, key0 += PHILOX_W32_0, key1 += PHILOX_W32_1) {
      for (std::size_t k = 0; k < lanes; ++k) {
        std::uint64_t const p = std::uint64_t{PHILOX_M4x32_0} * a[k], q = std::uint64_t{PHILOX_M4x32_1} * c[k];
        a[k] = static_cast<std::uint32_t>(q >> 32) ^ b[k] ^ key0;
        b[k] = static_cast<std::uint32_t>(q);
        c[k] = static_cast<std::uint32_t>(p >> 32) ^ d[k] ^ key1;
        d[k] = static_cast<std::uint32_t>(p);
      }
    }
    std::uint32_t* const words = out.data() + done;
    for (std::size_t k = 0; k < lanes; ++k) words[4 * k] = a[k], words[4 * k + 1] = b[k], words[4 * k + 2] = c[k], words[4 * k + 3] = d[k];
  }
  for (; done + 4 <= out.size(); done += 4, ++first)
    std::ranges::copy(block_of(key_, first), out.begin() + static_cast<std::ptrdiff_t>(done));
}

std::uint64_t Stream::below(std::uint64_t i, std::uint64_t n) const {
  if (n == 0) throw Error("random: a uniform integer below 0 does not exist");
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(bits(i)) * n) >> 64);
}

}  // namespace heed
