#include "autograd/blas/products.hpp"

#include <atomic>

#include "autograd/blas/amx.hpp"
#include "autograd/blas/blas_library.hpp"
#include "autograd/blas/elements.hpp"
#include "autograd/blas/gemm.hpp"

namespace heed {

namespace {

Products chosen;
std::atomic<std::int64_t> flops{0};

}  // namespace

void set_products(Products wanted) { chosen = wanted; }

Products products() { return chosen; }

std::int64_t product_flops() { return flops.load(std::memory_order_relaxed); }

std::string factors_in_words() {
  if (!chosen.bfloat16) return "in float32";
  if (kernels::has_amx()) return "in bfloat16 by AMX";
  return kernels::has_pairs && !kernels::bfloat16_is_slower() ? "in bfloat16 by AVX512_BF16" : "in bfloat16, multiplied in float32";
}

std::string matrix_library() { return detail::blas_name() + ", factors " + factors_in_words(); }

namespace detail {

void count_product_flops(std::int64_t operations) { flops.fetch_add(operations, std::memory_order_relaxed); }

}  // namespace detail

}  // namespace heed
