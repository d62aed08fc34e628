#pragma once

#include <cstdint>
#include <string>

namespace heed {

/// How float32 matrices are multiplied; products of float64 are OpenBLAS's always. A choice of the user, never of a clock: the same
/// settings give the same bits. Those of middling sizes are made by a kernel of our own (autograd/kernels/gemm_tiles.hpp) whichever
/// library is chosen.
struct Products {
  /// onednn: by oneDNN where a fixed table of shapes says that it is faster (autograd/kernels/gemm_onednn.cpp), by OpenBLAS elsewhere.
  enum class Library : std::uint8_t { openblas, onednn } library = Library::openblas;
  /// Rounds the factors to bfloat16 (the nearest, ties to even) and sums their products in float32: by a kernel of our own where the
  /// processor has AMX (autograd/kernels/gemm_amx.hpp), else by oneDNN's, which have twice float32's peak with AVX512_BF16, or, where that
  /// is slower (bfloat16_is_slower(), autograd/kernels/gemm.hpp), as float32 numbers. A decoder's weights are rounded once
  /// (autograd/constant_weights.hpp).
  bool bfloat16 = false;
};

/// Sets it for the whole process; not while products are running. Throws Error for bfloat16 on a processor without AVX512_BF16.
void set_products(Products wanted);
Products products();
/// Whether set_products() takes bfloat16 here.
bool has_bfloat16();
/// Who makes the large ones: "openblas", "onednn" or "amx".
std::string products_by();

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

/// The matrix libraries in use and the kernels that the first of them chose for this processor: "OpenBLAS 0.3.21 … Cooperlake".
std::string matrix_library();

namespace detail {
void count_product_flops(std::int64_t operations);
/// The libraries' own threads, of which each thread of ours wants none: to be called in every thread that multiplies.
void keep_libraries_single_threaded();
}  // namespace detail

}  // namespace heed
