#pragma once

#include <string>

#include <CLI/App.hpp>

#include "experiments/commands/command_line.hpp"
#include "experiments/config/config.hpp"

namespace heed {

/// What every command takes, before its name and after.
void add_everywhere(CLI::App& app, CommandLine& line);

/// Every command with its arguments, options and page of help; what they say goes into `line`, which must outlive the app.
void add_commands(CLI::App& app, CommandLine& line);

}  // namespace heed
