#include "autograd/blas/tiled_product.hpp"
#include "autograd/blas/tiles.hpp"

namespace heed::kernels {

#ifdef __AVX512BF16__
template void tiled_gemm<BFloat16Pairs>(std::int64_t, std::int64_t, std::int64_t, float, Matrix<float>, Matrix<float>, float, float*,
                                        std::int64_t, Addend<float> const&);
template void parallel_tiled_gemm<BFloat16Pairs>(std::int64_t, std::int64_t, std::int64_t, Matrix<float>, Matrix<float>, float*,
                                                 Addend<float> const&, RowSum<float>*);
#endif

}  // namespace heed::kernels
