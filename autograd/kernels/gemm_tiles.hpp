#pragma once

#include <cstdint>

#include "autograd/kernels/gemm.hpp"
#include "autograd/kernels/row_sum.hpp"

/// Products of the sizes that small models and the blocks of attention have. The libraries copy both factors into an order of their own
/// first, which costs a twentieth to a third of such a product; here the left one is read where it is.
namespace heed::kernels {

/// Whether tiled_gemm() is the faster one for A [n, k] · B [k, m], by their shapes and strides: a rule, measured once (see its definition).
bool tiles_are_faster(std::int64_t n, std::int64_t m, std::int64_t k, Matrix<float> const& a, Matrix<float> const& b);

/// C [n, m] = alpha · A [n, k] · B [k, m] + beta · C + addend, on the calling thread alone; the addend's matrix has C's leading dimension,
/// its in_place is not looked at. An element of C is summed over k from first to last, in stretches of 384, or 192 if A is transposed,
/// whatever n and m are.
void tiled_gemm(std::int64_t n, std::int64_t m, std::int64_t k, float alpha, Matrix<float> a, Matrix<float> b, float beta, float* c,
                std::int64_t leading_c, Addend<float> const& addend = {});

/// C [n, m] = A [n, k] · B [k, m] + addend, contiguous, its rows shared among the pool's threads as each comes to them: bits are those of
/// one thread. `sum`, if not null and A is not transposed: A's rows are added to it.
void parallel_tiled_gemm(std::int64_t n, std::int64_t m, std::int64_t k, Matrix<float> a, Matrix<float> b, float* c,
                         Addend<float> const& addend, RowSum<float>* sum);

}  // namespace heed::kernels
