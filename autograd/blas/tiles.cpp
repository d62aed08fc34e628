#include "autograd/blas/gemm.hpp"
#include "autograd/blas/tiled_product.hpp"

namespace heed::kernels {

float* room_for_panels() {
  thread_local std::vector<float, xsimd::aligned_allocator<float, 64>> room(static_cast<std::size_t>(depth * breadth));
  return room.data();
}

float* room_for_rows() {
  constexpr Index L = lanes<float>, max_rows = 9 * std::max(Wide::rows, Narrow::rows);
  thread_local std::vector<float, xsimd::aligned_allocator<float, 64>> room(static_cast<std::size_t>((max_rows + L) * (depth + 2 * L)));
  return room.data();
}

template void tiled_gemm<Numbers>(ProductFactors const&, ProductResult const&);
template void parallel_tiled_gemm<Numbers>(ProductFactors const&, ProductResult const&);
// Their tiles are those of Numbers.
template void tiled_gemm<Rounded>(ProductFactors const&, ProductResult const&);
template void parallel_tiled_gemm<Rounded>(ProductFactors const&, ProductResult const&);

}  // namespace heed::kernels
