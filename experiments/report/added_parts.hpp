#pragma once

#include <functional>
#include <vector>

#include "experiments/report/material.hpp"
#include "experiments/report/study_page.hpp"

namespace heed {

/// Parts that a room above adds to the page of a run or an ablation; none where it holds nothing that they show.
using AddedParts = std::function<std::vector<StudyPart>(Material const&)>;

/// A file that adds some says `bool const registered = register_added_parts(…);` and nothing else needs to know.
bool register_added_parts(AddedParts parts);

/// All that apply.
std::vector<StudyPart> added_parts(Material const& material);

}  // namespace heed
