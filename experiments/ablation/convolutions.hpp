#pragma once

#include <optional>
#include <string>

#include "experiments/ablation/plan.hpp"

namespace heed {

/// Which arms have a short convolution before attention ("every arm", or their names), in a comparison in which a layer has one or has no
/// softmax; a convolution that one arm alone has explains much of recall. Nothing for other models and comparisons.
std::optional<std::string> convolutions_in_words(Ablation const& ablation);

}  // namespace heed
