#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace heed {

/// A counter-based random stream: draw i is a pure function of (seed, purpose, i). Streams are independent, any draw can be made on any
/// thread, and a resumed run continues exactly. Philox4x32-10 (Salmon et al. 2011, Random123).
class Stream {
 public:
  /// `purpose` names what the draws are for ("data", "dropout", a parameter's name, …).
  Stream(std::uint64_t seed, std::string_view purpose);

  /// An independent stream, named by a further word or number (a step, a sequence, a layer).
  Stream child(std::string_view name) const;
  Stream child(std::uint64_t index) const;

  /// 64 uniform bits.
  std::uint64_t bits(std::uint64_t i) const;
  /// out[k] = bits(first + k), many at a time.
  void bits(std::uint64_t first, std::span<std::uint64_t> out) const;
  /// Uniform in [0, 1), 53 bits.
  double uniform(std::uint64_t i) const;
  /// Standard normal by Box–Muller: √(−2 ln(1 − u)) cos(2πv) with u and v uniform, the two halves of draw i. To 4 ulp, by the engine's own
  /// logarithm and cosine: its bits do not depend on the C library.
  double normal(std::uint64_t i) const;
  /// out[k] = normal(first + k), same bits.
  void normals(std::uint64_t first, std::span<double> out) const;
  /// The 32-bit words of draws first, first + 1, …, four each. The number of words is a multiple of four.
  void words(std::uint64_t first, std::span<std::uint32_t> out) const;
  /// Uniform integer in [0, n), unbiased to 2⁻⁶⁴ n; throws Error if n is 0.
  std::uint64_t below(std::uint64_t i, std::uint64_t n) const;

 private:
  explicit Stream(std::uint64_t key) : key_(key) {}
  std::uint64_t key_;
};

}  // namespace heed
