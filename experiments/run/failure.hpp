#pragma once

#include <functional>
#include <string>

#include "experiments/run/session.hpp"

namespace heed {

/// Prints "heed: MESSAGE" as a single line on standard error and returns the code.
Exit fail(Exit code, std::string message);

/// Calls f; prints what it throws by fail(), with the exit code of its kind (experiments/README.md).
Exit guarded(std::function<Exit()> const& f);

}  // namespace heed
