#pragma once

#include "autograd/blas/elements.hpp"
#include "autograd/blas/gemm.hpp"
#include "autograd/blas/row_sum.hpp"

/// Products of float32 matrices by tiles of sums in registers (Goto & van de Geijn 2008). Element: Numbers, Rounded or Pairs
/// (elements.hpp), the last where has_pairs. An element of C is summed over k in order, in stretches of 384 words (192 if A is transposed)
/// for any n and m: its bits do not depend on how C is split.
namespace heed::kernels {

/// C [n, m] = alpha · A [n, k] · B [k, m] + beta · C + addend, single-threaded; the addend's matrix has C's leading dimension, its in_place
/// is ignored. None of n, m, k is 0.
template <class Element>
void tiled_gemm(Index n, Index m, Index k, float alpha, Matrix<float> a, Matrix<float> b, float beta, float* c, Index leading_c,
                Addend<float> const& addend = {});

/// C [n, m] = A [n, k] · B [k, m] + addend, contiguous; the pool's threads take rows of C dynamically, with the bits of one thread. `sum`,
/// if not null and A is not transposed: A's rows, before rounding, are added to it.
template <class Element>
void parallel_tiled_gemm(Index n, Index m, Index k, Matrix<float> a, Matrix<float> b, float* c, Addend<float> const& addend,
                         RowSum<float>* sum);

// The same with factors rounded to bfloat16 and sums in float32 by AMX, the matrix instructions of Intel's processors since Sapphire
// Rapids: up to 16 times the throughput of AVX-512 in float32.

/// Whether the processor has AMX, this build may use it and the system permits it.
bool has_amx();

/// C [n, m] = alpha · A [n, k] · B [k, m] + beta · C, single-threaded. An element of C is summed over k in order, in stretches of 512 for
/// any n and m. Subnormal float32 numbers count as 0.
void amx_gemm(Index n, Index m, Index k, float alpha, Matrix<float> a, Matrix<float> b, float beta, float* c, Index leading_c);

/// C [n, m] = A [n, k] · B [k, m] + addend, contiguous, on the pool with the bits of one thread. `sum`, if not null and A is not
/// transposed: A's rows, before rounding, are added to it.
void parallel_amx_gemm(Index n, Index m, Index k, Matrix<float> a, Matrix<float> b, float* c, Addend<float> const& addend,
                       RowSum<float>* sum);

}  // namespace heed::kernels
