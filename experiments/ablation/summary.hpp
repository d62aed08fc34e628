#pragma once

#include <string>
#include <vector>

#include "experiments/ablation/tuning.hpp"
#include "experiments/report/ablation_result.hpp"

namespace heed {

/// What the trials say that are done or have failed. Throws FileError for a damaged trial.
AblationResult summarise(Ablation const& ablation, std::vector<Job> const& jobs, TuningResult const& tuned);

/// As summary.md.
std::string summary_markdown(AblationResult const& result);
/// For the terminal; begins with `folder`.
std::string summary_page(std::string const& folder, AblationResult const& result);

}  // namespace heed
