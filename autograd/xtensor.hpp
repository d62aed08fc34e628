#pragma once

// The one door to xtensor: every other file includes this one, and only .cpp files and kernels do.

#if __has_include(<xtensor/containers/xadapt.hpp>)  // the layout of folders since xtensor 0.26
#include <xtensor/containers/xadapt.hpp>
#include <xtensor/core/xfunction.hpp>
#include <xtensor/core/xnoalias.hpp>
#else
#include <xtensor/xadapt.hpp>
#include <xtensor/xfunction.hpp>
#include <xtensor/xnoalias.hpp>
#endif
#include <array>
#include <cstdint>

#include <xsimd/xsimd.hpp>

namespace heed {

/// n elements at `data` as an xtensor array of one axis that owns nothing.
template <class T>
auto span_array(T* data, std::int64_t n) {
  auto const extent = static_cast<std::size_t>(n);
  return xt::adapt(data, extent, xt::no_ownership(), std::array<std::size_t, 1>{extent});
}

}  // namespace heed
