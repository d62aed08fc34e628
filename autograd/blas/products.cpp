#include "autograd/blas/products.hpp"

#include <atomic>
#include <cstdlib>
#include <string_view>

#include <dlfcn.h>

#include "autograd/blas/elements.hpp"
#include "autograd/blas/gemm.hpp"
#include "autograd/processor/processor.hpp"

#ifndef HEED_ACCELERATE
#include <cblas.h>
#endif

#if defined(__x86_64__) && defined(__ELF__)
// OpenBLAS's kernel selection at load time; exported, but not declared in its headers, and missing in builds for a single processor.
extern "C" {
[[gnu::weak]] void gotoblas_dynamic_init();
[[gnu::weak]] void gotoblas_dynamic_quit();
}
#endif

namespace heed {

#if defined(__x86_64__) && defined(__ELF__) && !defined(HEED_ACCELERATE)

namespace {

/// OpenBLAS's best kernels for this processor and build; null without wide vectors.
char const* suitable_kernels() {
#ifdef __AVX512F__
  if (processor_has("AVX512_BF16")) return "Cooperlake";
  if (processor_has("AVX512DQ") && processor_has("AVX512BW") && processor_has("AVX512VL")) return "SkylakeX";
#endif
  return processor_has("AVX2") && processor_has("FMA") ? "Haswell" : nullptr;
}

/// The vector width of OpenBLAS's kernels; 0 for other names, those of processors without AVX2.
int width_of(std::string_view kernels) {
  for (std::string_view const name : {"SapphireRapids", "Cooperlake", "SkylakeX"})
    if (kernels == name) return 2;
  for (std::string_view const name : {"Haswell", "Zen", "Excavator"})
    if (kernels == name) return 1;
  return 0;
}

/// OpenBLAS chooses its kernels from a list of processors and underestimates newer ones (0.3.21 takes Emerald Rapids for "Prescott", of
/// 2004, and Zen 5 for "Haswell"); this corrects the choice before the first product. A user's OPENBLAS_CORETYPE takes precedence.
bool correct_kernels() {
  char const* const better = suitable_kernels();
  if (better == nullptr || width_of(openblas_get_corename()) >= width_of(better) || std::getenv("OPENBLAS_CORETYPE") != nullptr ||
      gotoblas_dynamic_init == nullptr || gotoblas_dynamic_quit == nullptr)
    return false;
  ::setenv("OPENBLAS_CORETYPE", better, 0);
  gotoblas_dynamic_quit();
  gotoblas_dynamic_init();
  return true;
}

[[maybe_unused]] bool const corrected = correct_kernels();

}  // namespace

#endif

namespace {

Products chosen;
std::atomic<Index> flops{0};

}  // namespace

namespace kernels {

void count_product_flops(Index operations) { flops.fetch_add(operations, std::memory_order_relaxed); }

#ifdef HEED_ACCELERATE

/// Read by Accelerate at its first product; a user's own setting takes precedence.
void keep_library_single_threaded() { [[maybe_unused]] static bool const everywhere = ::setenv("VECLIB_MAXIMUM_THREADS", "1", 0) == 0; }

#else

void keep_library_single_threaded() {
  [[maybe_unused]] static bool const everywhere = [] {
    openblas_set_num_threads(1);
    return true;
  }();
  // Built with OpenMP it asks OpenMP, which has a number for each thread. Up to 0.3.21 the call above sets it for the calling thread; newer
  // ones do not, and then multiply on all cores, with other bits whenever two threads do so at once.
  [[maybe_unused]] thread_local bool const here = [] {
    auto const set = reinterpret_cast<void (*)(int)>(::dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
    if (openblas_get_parallel() == OPENBLAS_OPENMP && set != nullptr) set(1);
    return true;
  }();
}

#endif

}  // namespace kernels

void set_products(Products wanted) { chosen = wanted; }

Products products() { return chosen; }

WithProducts::WithProducts(Products wanted) : Temporarily(chosen, wanted) {}

Index product_flops() { return flops.load(std::memory_order_relaxed); }

std::string factors_in_words() {
  if (!products().bfloat16) return "in float32";
  if (kernels::has_amx()) return "in bfloat16 by AMX";
  return kernels::has_pairs && !kernels::bfloat16_is_slower() ? "in bfloat16 by AVX512_BF16" : "in bfloat16, multiplied in float32";
}

std::string matrix_library() {
#ifdef HEED_ACCELERATE
  std::string library = "Accelerate";
#else
  std::string library = openblas_get_config();
  library.erase(library.find_last_not_of(' ') + 1);
#endif
  return library + ", factors " + factors_in_words();
}

}  // namespace heed
