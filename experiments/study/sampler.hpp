#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "experiments/study/softmax_scaling.hpp"

namespace heed {

/// Draws blocks of one (distribution, d_k, keys) until every standard error is small enough: a cell for each scale, without theory. Where
/// `part` is the file that an earlier call has left it goes on with that, and comes to the bits of one that was not interrupted. An
/// interruption is looked for after so many blocks have been measured: then nothing, and what was measured is in the file (an empty path:
/// nowhere). Throws Error if it cannot be.
std::optional<std::vector<ScalingCell>> sample_cells(SoftmaxScalingSettings const& settings, std::string const& distribution,
                                                     std::int64_t d_k, std::int64_t keys, std::uint64_t seed,
                                                     std::filesystem::path const& part);

}  // namespace heed
