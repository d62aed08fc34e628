#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "experiments/run/command.hpp"

namespace heed {

/// What was asked for on the command line.
struct CommandLine {
  std::string page;     ///< --help and --version: all there is to do is to print it
  std::string command;  ///< its name
  GlobalOptions everywhere;
  std::shared_ptr<void> options;  ///< the command's own
  std::function<Exit(GlobalOptions const&)> run;
};

/// heed's version and revision, in one line, for which nothing is asked of a library.
std::string version();
/// What --version prints: that, and compiler, libraries, processor and system.
std::string version_page();

/// Reads the arguments after the program's name. Throws ConfigError that names the argument, and the nearest command or option for one
/// that does not exist.
CommandLine parse_command_line(std::vector<std::string> arguments);

}  // namespace heed
