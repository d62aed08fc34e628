#pragma once

#include <cstdint>

#include "autograd/blas/gemm.hpp"
#include "autograd/blas/row_sum.hpp"

/// Products of factors that are rounded to bfloat16 and summed in float32 by AMX's instructions for matrices (Intel's, since Sapphire
/// Rapids): sixteen times what AVX-512 makes of float32 numbers.
namespace heed::kernels {

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
