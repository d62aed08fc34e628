#pragma once

#include <string>
#include <vector>

#include "experiments/ablation/plan.hpp"
#include "experiments/program/failure.hpp"

namespace heed {

class Trainer;

/// Throws ConfigError if an arm, which this trains, never records the ablation's metric, or if by what it varies its model is another
/// function of the weights that it begins with.
void check_arm(Ablation const& ablation, Arm const& arm, Trainer& trainer);

/// Builds data, model and optimizer of every arm that has not begun to train in the ablation's folder (`fresh`: of every arm), so that what
/// an arm lacks on this machine (data, memory) is reported before the others are trained. Returns the distinct Trainer::remark()s. Throws
/// as Trainer does, with the arm's name, and FolderError if trials have read different content, or other content than is there now
/// (TrialsRead).
std::vector<std::string> check_arms(Ablation const& ablation, bool quiet, bool fresh = false);

/// The same in a child process, as is necessary before trials are started; prints the remarks unless quiet. Returns the exit code.
Exit arms_checked(Ablation const& ablation, bool quiet, bool fresh);

}  // namespace heed
