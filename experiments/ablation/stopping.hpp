#pragma once

#include <string>
#include <vector>

#include "experiments/ablation/jobs.hpp"

namespace heed {

/// Gives out the seeds of a comparison one after another where `stop_losers` or `until_verdict` decide who gets more: a function of the
/// trials' values in the order of seeds, so that it does not matter when, where or how many at a time they were trained.
///
/// After each seed that all arms still in the comparison have ended: with `stop_losers` those leave whose confidence sequence against the
/// arm with the best mean, corrected for the number of arms, excludes differences up to the margin; with `until_verdict` those that have a
/// verdict against the baseline, and so many seeds. The baseline stays as long as any other arm. What nobody needs is marked as spared,
/// what is needed next as waiting, up to `at_a_time` trials, of seeds that follow too. Returns whether a trial that is needed has not
/// ended.
bool give_out_seeds(Ablation const& ablation, std::vector<Job>& jobs, Index at_a_time);

/// "stop_losers: no more seeds for dot after 8, general after 9": empty if no arm was stopped.
std::string stopped_arms_in_words(Ablation const& ablation, std::vector<Job> const& jobs);

}  // namespace heed
