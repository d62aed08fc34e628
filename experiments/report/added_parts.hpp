#pragma once

#include <functional>
#include <vector>

#include "autograd/registry.hpp"
#include "experiments/report/material.hpp"
#include "experiments/report/study_page.hpp"

namespace heed {

/// Parts that a room above declares for the page of a run or an ablation; none where it holds nothing that they show.
using AddedParts = std::function<std::vector<StudyPart>(Material const&)>;

}  // namespace heed
