#include "autograd/blas/tiled_product.hpp"
#include "autograd/blas/tiles.hpp"

namespace heed::kernels {

#ifdef __AVX512BF16__
template void tiled_gemm<BFloat16Pairs>(Index, Index, Index, float, Matrix<float>, Matrix<float>, float, float*, Index,
                                        Addend<float> const&);
template void parallel_tiled_gemm<BFloat16Pairs>(Index, Index, Index, Matrix<float>, Matrix<float>, float*, Addend<float> const&,
                                                 RowSum<float>*);
#endif

}  // namespace heed::kernels
