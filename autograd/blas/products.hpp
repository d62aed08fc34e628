#pragma once

#include <cstdint>
#include <string>

namespace heed {

/// How float32 matrices are multiplied. A choice of the user, never of a clock: the same settings give the same bits.
struct Products {
  /// Rounds the factors to bfloat16 (the nearest, ties to even) and sums their products in float32: by AMX or AVX512_BF16 where the
  /// processor has them, with up to sixteen times or twice float32's speed, else as float32 numbers, which have all of bfloat16's. A
  /// decoder's weights are rounded once (autograd/blas/rounded_weights.hpp).
  bool bfloat16 = false;
};

/// Sets it for the whole process; not while products are running.
void set_products(Products wanted);
Products products();
/// How the factors of float32 products are multiplied here: "in float32", "in bfloat16 by AVX512_BF16", "in bfloat16 by AMX", or "in
/// bfloat16, multiplied in float32".
std::string factors_in_words();

/// While it lives, products are made so; then as before.
class WithProducts {
 public:
  explicit WithProducts(Products wanted) : before_(products()) { set_products(wanted); }
  ~WithProducts() { set_products(before_); }
  WithProducts(WithProducts const&) = delete;
  WithProducts& operator=(WithProducts const&) = delete;

 private:
  Products before_;
};

/// Floating-point operations of all matrix products since the program began, those of other threads included: 2·n·m·k each.
std::int64_t product_flops();

/// The library of float64's products, the kernels that it chose for this processor, and how float32's factors are multiplied: "OpenBLAS
/// 0.3.21 … Cooperlake, factors in float32".
std::string matrix_library();

namespace detail {
void count_product_flops(std::int64_t operations);
/// The libraries' own threads, of which each thread of ours wants none: to be called in every thread that multiplies.
void keep_libraries_single_threaded();
}  // namespace detail

}  // namespace heed
