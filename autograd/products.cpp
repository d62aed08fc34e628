#include "autograd/products.hpp"

#include <atomic>
#include <cstdlib>
#include <string_view>

#include <cblas.h>

#include "autograd/error.hpp"
#include "autograd/kernels/gemm.hpp"
#include "autograd/kernels/gemm_amx.hpp"
#include "autograd/kernels/gemm_onednn.hpp"

// How OpenBLAS chooses its kernels as it is loaded; exported, but in none of its headers, and missing where it was built for one processor.
extern "C" {
[[gnu::weak]] void gotoblas_dynamic_init();
[[gnu::weak]] void gotoblas_dynamic_quit();
}

namespace heed {

namespace {

Products chosen;
std::atomic<std::int64_t> flops{0};

/// OpenBLAS's kernels for what this processor can do; null where it has no wide vectors.
char const* suitable_kernels() {
  if (__builtin_cpu_supports("avx512bf16")) return "Cooperlake";
  if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) return "SkylakeX";
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? "Haswell" : nullptr;
}

/// OpenBLAS takes a processor that is younger than itself for one of 2004 (0.3.21: Emerald Rapids for "Prescott") and multiplies at a fifth
/// of its speed; it is told better before it has multiplied anything. A user's OPENBLAS_CORETYPE stands.
bool correct_kernels() {
  std::string_view const found = openblas_get_corename();
  char const* const better = suitable_kernels();
  if (found != "Prescott" || better == nullptr || std::getenv("OPENBLAS_CORETYPE") != nullptr || gotoblas_dynamic_init == nullptr ||
      gotoblas_dynamic_quit == nullptr)
    return false;
  ::setenv("OPENBLAS_CORETYPE", better, 0);
  gotoblas_dynamic_quit();
  gotoblas_dynamic_init();
  return true;
}

[[maybe_unused]] bool const corrected = correct_kernels();

}  // namespace

void set_products(Products wanted) {
  if (wanted.bfloat16 && !has_bfloat16()) throw Error("bfloat16: this processor has no instructions for its products (AVX512_BF16)");
  chosen = wanted;
}

Products products() { return chosen; }

bool has_bfloat16() { return __builtin_cpu_supports("avx512bf16") != 0; }

std::int64_t product_flops() { return flops.load(std::memory_order_relaxed); }

std::string products_by() {
  if (chosen.bfloat16 && kernels::has_amx()) return "amx";
  if (chosen.bfloat16 && !kernels::bfloat16_is_slower()) return "onednn";
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
