#pragma once

#include <cstdint>

#include "autograd/blas/elements.hpp"
#include "autograd/blas/gemm.hpp"
#include "autograd/blas/row_sum.hpp"

/// Products of float32 matrices by tiles of sums in registers (Goto & van de Geijn 2008). Element: Numbers, Rounded or Pairs
/// (elements.hpp), the last where has_pairs. An element of C is summed over k from first to last, in stretches of 384 words, or 192 if A is
/// transposed, whatever n and m are: its bits do not depend on which rows and columns are made together.
namespace heed::kernels {

/// C [n, m] = alpha · A [n, k] · B [k, m] + beta · C + addend, on the calling thread alone; the addend's matrix has C's leading dimension,
/// its in_place is not looked at. None of n, m, k is 0.
template <class Element>
void tiled_gemm(std::int64_t n, std::int64_t m, std::int64_t k, float alpha, Matrix<float> a, Matrix<float> b, float beta, float* c,
                std::int64_t leading_c, Addend<float> const& addend = {});

/// C [n, m] = A [n, k] · B [k, m] + addend, contiguous, its rows shared among the pool's threads as each comes to them: bits are those of
/// one thread. `sum`, if not null and A is not transposed: A's rows, as they are before they are rounded, are added to it.
template <class Element>
void parallel_tiled_gemm(std::int64_t n, std::int64_t m, std::int64_t k, Matrix<float> a, Matrix<float> b, float* c,
                         Addend<float> const& addend, RowSum<float>* sum);

// The same of factors that are rounded to bfloat16 and summed in float32 by AMX's instructions for matrices (Intel's, since Sapphire
// Rapids): sixteen times what AVX-512 makes of float32 numbers.

/// Whether the processor has them, this build may use them and the system lets it.
bool has_amx();

/// C [n, m] = alpha · A [n, k] · B [k, m] + beta · C, on the calling thread alone. An element of C is summed over k in stretches of 512,
/// from first to last, whatever n and m are. Numbers below float32's normal ones count as 0.
void amx_gemm(std::int64_t n, std::int64_t m, std::int64_t k, float alpha, Matrix<float> a, Matrix<float> b, float beta, float* c,
              std::int64_t leading_c);

/// C [n, m] = A [n, k] · B [k, m] + addend, contiguous, on the pool: bits are those of one thread. `sum`, if not null and A is not
/// transposed: A's rows, as they are before they are rounded, are added to it.
void parallel_amx_gemm(std::int64_t n, std::int64_t m, std::int64_t k, Matrix<float> a, Matrix<float> b, float* c,
                       Addend<float> const& addend, RowSum<float>* sum);

}  // namespace heed::kernels
