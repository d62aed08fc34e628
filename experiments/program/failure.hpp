#pragma once

#include <functional>
#include <string>

#include "autograd/error.hpp"

namespace heed {

/// The exit codes of the program (experiments/README.md); better to unclear are verdicts of heed judge.
enum class Exit : int {
  done = 0,
  other = 1,
  usage = 2,
  data = 3,
  failed = 4,
  better = 10,
  worse = 11,
  equivalent = 12,
  unclear = 13,
  interrupted = 130
};

/// Training failed: NaN or divergence; the message names step, operation and layer.
struct TrainingError : Error {
  using Error::Error;
};

/// A run's folder cannot be used: it holds another configuration (the message names the keys that differ), was begun with other data or on
/// another machine, another process works in it, or its file system has no locks.
struct FolderError : Error {
  using Error::Error;
};

/// Thrown when a noted signal has stopped the work: exit code 130.
struct Interrupted : Error {
  using Error::Error;
};

/// Prints "heed: MESSAGE" as a single line on standard error and returns the code.
Exit fail(Exit code, std::string message);

/// Calls f; prints what it throws by fail(), with the exit code of its kind (experiments/README.md).
Exit guarded(std::function<Exit()> const& f);

}  // namespace heed
