#include "autograd/blas/gemm.hpp"
#include "autograd/blas/tiled_product.hpp"

namespace heed::kernels {

#ifdef __AVX512BF16__
template void tiled_gemm<BFloat16Pairs>(ProductFactors const&, ProductResult const&);
template void parallel_tiled_gemm<BFloat16Pairs>(ProductFactors const&, ProductResult const&);
#endif

}  // namespace heed::kernels
