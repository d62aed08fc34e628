#include "autograd/parallel.hpp"

#include <cblas.h>
#include <omp.h>

#include <algorithm>
#include <exception>
#include <mutex>

namespace heed {

namespace {

int configured = 0;

}  // namespace

void set_threads(int count) {
  configured = std::max(1, count);
  omp_set_num_threads(configured);
  openblas_set_num_threads(1);
}

int threads() {
  if (configured == 0) set_threads(omp_get_max_threads());
  return configured;
}

std::string matrix_library() {
  std::string text = openblas_get_config();
  return text.erase(text.find_last_not_of(' ') + 1);
}

namespace detail {

bool worth_waking(double nanoseconds) { return nanoseconds > 20e3 && threads() > 1 && omp_in_parallel() == 0; }

void parallel_stretches(std::int64_t n, std::int64_t align, void (*run)(void const*, std::int64_t, std::int64_t), void const* context) {
  std::int64_t const pieces = (n + align - 1) / align;
  std::int64_t const count = std::min<std::int64_t>(threads(), pieces);
  std::exception_ptr failure;
  std::mutex failing;
#pragma omp parallel for schedule(static) num_threads(static_cast<int>(count))
  for (std::int64_t stretch = 0; stretch < count; ++stretch) {
    try {
      std::int64_t const begin = pieces * stretch / count * align;
      run(context, begin, std::min(n, pieces * (stretch + 1) / count * align));
    } catch (...) {  // an exception must not leave the parallel region
      std::lock_guard const lock(failing);
      failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace detail

}  // namespace heed
