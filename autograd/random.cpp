#include "autograd/random.hpp"

#include <cmath>
#include <numbers>

#include <Random123/philox.h>

#include "autograd/error.hpp"

namespace heed {

namespace {

using Philox = r123::Philox4x32_R<10>;

/// Draw i: the four 32-bit words of block i under the stream's key, as two of 64 bits.
std::pair<std::uint64_t, std::uint64_t> draw(std::uint64_t key, std::uint64_t i) {
  Philox::ctr_type const counter = {{static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i >> 32), 0, 0}};
  Philox::key_type const words = {{static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)}};
  auto const block = Philox()(counter, words);
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

std::uint64_t Stream::below(std::uint64_t i, std::uint64_t n) const {
  if (n == 0) throw Error("random: a uniform integer below 0 does not exist");
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(bits(i)) * n) >> 64);
}

}  // namespace heed
