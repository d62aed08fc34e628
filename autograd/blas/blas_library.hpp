#pragma once

#include <string>

namespace heed::detail {

/// The library of float64's products, with its version and kernels where it tells them.
std::string blas_name();

}  // namespace heed::detail
