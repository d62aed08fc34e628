#include "autograd/products.hpp"

#include <atomic>

#include <cblas.h>

#include "autograd/error.hpp"
#include "autograd/kernels/gemm_amx.hpp"
#include "autograd/kernels/gemm_onednn.hpp"

namespace heed {

namespace {

Products chosen;
std::atomic<std::int64_t> flops{0};

}  // namespace

void set_products(Products wanted) {
  if (wanted.bfloat16 && !has_bfloat16()) throw Error("bfloat16: this processor has no instructions for its products (AVX512_BF16)");
  chosen = wanted;
}

Products products() { return chosen; }

bool has_bfloat16() { return __builtin_cpu_supports("avx512bf16") != 0; }

std::int64_t product_flops() { return flops.load(std::memory_order_relaxed); }

std::string products_by() {
  if (chosen.bfloat16) return kernels::has_amx() ? "amx" : "onednn";
  return chosen.library == Products::Library::onednn ? "onednn" : "openblas";
}

std::string matrix_library() {
  std::string text = openblas_get_config();
  text.erase(text.find_last_not_of(' ') + 1);
  if (products_by() == "onednn") text += ", " + kernels::onednn_version();
  if (chosen.bfloat16) text += ", factors in bfloat16";
  if (products_by() == "amx") text += " by AMX";
  return text;
}

namespace detail {

void count_product_flops(std::int64_t operations) { flops.fetch_add(operations, std::memory_order_relaxed); }

void keep_libraries_single_threaded() {
  openblas_set_num_threads(1);  // its OpenMP flavour tells OpenMP, which keeps this by thread and which oneDNN asks
}

}  // namespace detail

}  // namespace heed
