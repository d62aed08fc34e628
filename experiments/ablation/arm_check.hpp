#pragma once

#include "experiments/ablation/plan.hpp"
#include "experiments/run/session.hpp"

namespace heed {

/// Makes data, model and optimizer of every arm that has not begun to train in the ablation's folder: what an arm lacks on this machine
/// (data, memory) is better told before the others have trained. Throws as Trainer does, with the arm's name.
void check_arms(Ablation const& ablation, bool quiet);

/// The same in a process of its own, as it must be before trials are started. The exit code of what the process has told.
Exit arms_checked(Ablation const& ablation, bool quiet);

}  // namespace heed
