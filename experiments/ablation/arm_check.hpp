#pragma once

#include <string>
#include <vector>

#include "experiments/ablation/plan.hpp"
#include "experiments/run/session.hpp"

namespace heed {

/// Makes data, model and optimizer of every arm that has not begun to train in the ablation's folder (`fresh`: of every arm): what an arm
/// lacks on this machine (data, memory) is better told before the others have trained. Returns Trainer::remark() of arms, each that
/// differs. Throws as Trainer does, with the arm's name, and FolderError if what trials have read is not what others have, or what is there
/// now (TrialsRead).
std::vector<std::string> check_arms(Ablation const& ablation, bool quiet, bool fresh = false);

/// The same in a process of its own, as it must be before trials are started, which tells the remarks unless it is to be quiet. The exit
/// code of what the process has told.
Exit arms_checked(Ablation const& ablation, bool quiet, bool fresh);

}  // namespace heed
