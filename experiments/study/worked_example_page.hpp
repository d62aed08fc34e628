#pragma once

#include <vector>

#include "experiments/study/study.hpp"

namespace heed {

/// The worked example step by step: each product with its factors in colours, and one entry of it spelled out. Throws FileError for a
/// results.csv that lacks a matrix.
std::vector<StudyPart> worked_example_page(StudyRecord const& record);

}  // namespace heed
