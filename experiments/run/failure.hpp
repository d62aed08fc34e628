#pragma once

#include <functional>
#include <string>

#include "experiments/run/session.hpp"

namespace heed {

/// Says "heed: MESSAGE" in one line on standard error, whatever the message holds, and returns the code.
Exit fail(Exit code, std::string message);

/// Calls f. What it throws is said by fail(), with the exit code of its kind (experiments/README.md).
Exit guarded(std::function<Exit()> const& f);

}  // namespace heed
