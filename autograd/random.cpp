#include "autograd/random.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numbers>

#include <Random123/philox.h>

#include "autograd/error.hpp"
#include "autograd/kernels/simd.hpp"

namespace heed {

namespace {

using Philox = r123::Philox4x32_R<10>;

/// The four 32-bit words of block i under the stream's key.
Philox::ctr_type block_of(std::uint64_t key, std::uint64_t i) {
  Philox::ctr_type const counter = {{static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i >> 32), 0, 0}};
  Philox::key_type const words = {{static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)}};
  return Philox()(counter, words);
}

/// SplitMix64's finaliser: spreads a change of one bit over the whole word.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

/// FNV-1a over the name, starting from the parent's key, then mixed.
std::uint64_t derive(std::uint64_t key, std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325U ^ mix(key + 0x9e3779b97f4a7c15U);
  for (char const c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return mix(hash);
}

double unit(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

constexpr std::size_t together = 16;

/// Draws first … first + 15, each as two words of 64 bits.
struct Draws {
  alignas(64) std::array<std::uint64_t, together> low, high;
};

using kernels::multiply_lower, kernels::Words;

// Philox as block_of has it, a batch of counters at a time; tests hold the one against the other. Each of a block's four words is the lower
// half of a 64-bit word. What is in the upper halves does not matter until the end.
Draws draws_from(std::uint64_t key, std::uint64_t first) {
  constexpr std::size_t batches = together / Words::size;
  Draws draws;
  for (std::size_t k = 0; k < together; ++k) draws.low[k] = first + k;
  std::array<Words, batches> a, b, c, d;
  for (std::size_t k = 0; k < batches; ++k) {
    a[k] = Words::load_aligned(&draws.low[k * Words::size]);
    b[k] = a[k] >> 32;
    c[k] = d[k] = Words(0);
  }
  auto key0 = static_cast<std::uint32_t>(key), key1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round, key0 += PHILOX_W32_0, key1 += PHILOX_W32_1) {
    for (std::size_t k = 0; k < batches; ++k) {
      Words const p = multiply_lower(a[k], PHILOX_M4x32_0), q = multiply_lower(c[k], PHILOX_M4x32_1);
      a[k] = (q >> 32) ^ b[k] ^ Words(key0);
      b[k] = q;
      c[k] = (p >> 32) ^ d[k] ^ Words(key1);
      d[k] = p;
    }
  }
  Words const half(0xffffffffU);
  for (std::size_t k = 0; k < batches; ++k) {
    ((a[k] & half) | (b[k] << 32)).store_aligned(&draws.low[k * Words::size]);
    ((c[k] & half) | (d[k] << 32)).store_aligned(&draws.high[k * Words::size]);
  }
  return draws;
}

using Doubles = xsimd::batch<double>;

/// cos(2πv) for v in [0, 1]. The nearest quarter turn is taken off, exactly, by hand: xsimd's own reduction would choose between formulas
/// by what else the batch holds, and an element's bits would depend on its neighbours.
Doubles cos_of_turns(Doubles const& v) {
  Doubles const quarters = xsimd::nearbyint(4.0 * v);
  auto const [sin, cos] = xsimd::sincos((v - 0.25 * quarters) * (2 * std::numbers::pi));  // of at most π/4
  auto const is = [&](double quarter) { return quarters == Doubles(quarter); };
  Doubles const value = xsimd::select(is(1) | is(3), sin, cos);
  return xsimd::select(is(1) | is(2), -value, value);
}

/// The normals of draws first … first + 15. One function for all, so that the compiler makes one piece of code with one rounding.
[[gnu::noinline]] void normals_from(std::uint64_t key, std::uint64_t first, double* out) {
  Draws const draws = draws_from(key, first);
  alignas(64) std::array<double, together> u, v;
  for (std::size_t k = 0; k < together; ++k) u[k] = unit(draws.low[k]), v[k] = unit(draws.high[k]);
  for (std::size_t k = 0; k < together; k += Doubles::size) {
    Doubles const radius = xsimd::sqrt(-2.0 * xsimd::log(1.0 - Doubles::load_aligned(&u[k])));
    (radius * cos_of_turns(Doubles::load_aligned(&v[k]))).store_unaligned(out + k);
  }
}

}  // namespace

Stream::Stream(std::uint64_t seed, std::string_view purpose) : key_(derive(mix(seed), purpose)) {}

Stream Stream::child(std::string_view name) const { return Stream(derive(key_, name)); }

Stream Stream::child(std::uint64_t index) const { return Stream(mix(key_ + 0x9e3779b97f4a7c15U * (index + 1))); }

std::uint64_t Stream::bits(std::uint64_t i) const {
  auto const block = block_of(key_, i);
  return std::uint64_t{block[1]} << 32 | block[0];
}

void Stream::bits(std::uint64_t first, std::span<std::uint64_t> out) const {
  for (; !out.empty(); first += together) {
    Draws const draws = draws_from(key_, first);
    std::size_t const count = std::min(out.size(), together);
    std::copy_n(draws.low.begin(), count, out.begin());
    out = out.subspan(count);
  }
}

double Stream::uniform(std::uint64_t i) const { return unit(bits(i)); }

double Stream::normal(std::uint64_t i) const {
  double value = 0;
  normals(i, {&value, 1});
  return value;
}

void Stream::normals(std::uint64_t first, std::span<double> out) const {
  for (; out.size() >= together; out = out.subspan(together), first += together) normals_from(key_, first, out.data());
  if (out.empty()) return;
  std::array<double, together> rest;
  normals_from(key_, first, rest.data());
  std::copy_n(rest.begin(), out.size(), out.begin());
}

void Stream::words(std::uint64_t first, std::span<std::uint32_t> out) const {
  static_assert(std::endian::native == std::endian::little);
  for (; out.size() > 8; first += together) {
    Draws const draws = draws_from(key_, first);
    alignas(64) std::array<std::uint64_t, 2 * together> pairs;
    for (std::size_t k = 0; k < together; ++k) pairs[2 * k] = draws.low[k], pairs[2 * k + 1] = draws.high[k];
    std::size_t const count = std::min(out.size(), 4 * together);
    std::memcpy(out.data(), pairs.data(), count * sizeof(std::uint32_t));
    out = out.subspan(count);
  }
  for (; out.size() >= 4; out = out.subspan(4), ++first) std::ranges::copy(block_of(key_, first), out.begin());
}

std::uint64_t Stream::below(std::uint64_t i, std::uint64_t n) const {
  if (n == 0) throw Error("random: a uniform integer below 0 does not exist");
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(bits(i)) * n) >> 64);
}

}  // namespace heed
