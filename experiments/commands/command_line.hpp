#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "experiments/program/command.hpp"

namespace heed {

/// The parsed command line.
struct CommandLine {
  std::string page;     ///< output of --help and --version; if not empty, there is nothing else to do
  std::string command;  ///< its name
  GlobalOptions everywhere;
  std::shared_ptr<void> options;  ///< the command's own
  std::function<Exit(GlobalOptions const&)> run;
};

/// heed's version and revision on one line.
std::string version();

/// Parses the arguments after the program's name. Throws ConfigError that names the argument and, for an unknown command or option, the
/// nearest one.
CommandLine parse_command_line(std::vector<std::string> arguments);

}  // namespace heed
