#include "autograd/blas/gemm.hpp"
#include "autograd/blas/tiled_product.hpp"

namespace heed::kernels {

namespace {

float* room(std::vector<float, xsimd::aligned_allocator<float, 64>>& own, Index count) {
  if (own.empty()) own.resize(static_cast<std::size_t>(count));
  return own.data();
}

}  // namespace

float* room_for_panels() {
  thread_local std::vector<float, xsimd::aligned_allocator<float, 64>> own;
  return room(own, depth * breadth);
}

float* room_for_rows() {
  constexpr Index L = lanes<float>, max_rows = 9 * std::max(Wide::rows, Narrow::rows);
  thread_local std::vector<float, xsimd::aligned_allocator<float, 64>> own;
  return room(own, (max_rows + L) * (depth + 2 * L));
}

template void tiled_gemm<Numbers>(ProductFactors const&, ProductResult const&);
template void parallel_tiled_gemm<Numbers>(ProductFactors const&, ProductResult const&);
// Their tiles are those of Numbers.
template void tiled_gemm<Rounded>(ProductFactors const&, ProductResult const&);
template void parallel_tiled_gemm<Rounded>(ProductFactors const&, ProductResult const&);

}  // namespace heed::kernels
