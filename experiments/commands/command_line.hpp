#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "experiments/bench/bench.hpp"
#include "experiments/commands/evaluate.hpp"
#include "experiments/commands/export.hpp"
#include "experiments/commands/inspect.hpp"
#include "experiments/commands/report.hpp"
#include "experiments/commands/sample.hpp"
#include "experiments/commands/tokenize.hpp"
#include "experiments/commands/translate.hpp"
#include "experiments/run/session.hpp"

namespace heed {

/// What was asked for on the command line.
struct CommandLine {
  std::string page;  ///< --help and --version: all there is to do is to print it
  /// run, plan, check, report, evaluate, sample, translate, export, inspect, tokenize, bench, compare, clean, schema, list
  std::string command;
  RunOptions run;  ///< for run, plan and check
  SampleOptions sample;
  InspectOptions inspect;
  TranslateOptions translate;
  ExportOptions exported;
  TokenizeOptions tokenize;
  BenchOptions bench;
  EvaluateOptions evaluate;
  ReportOptions report;
  std::vector<std::filesystem::path> runs;  ///< for compare and clean
  std::string topic, name;                  ///< for list; empty: which topics there are
  bool markdown = false;                    ///< for list
  std::optional<std::int64_t> threads;
};

/// heed's version and revision, in one line, for which nothing is asked of a library.
std::string version();
/// What --version prints: that, and compiler, libraries, processor and system.
std::string version_page();

/// Reads the arguments after the program's name. Throws ConfigError that names the argument, and the nearest command or option for one
/// that does not exist.
CommandLine parse_command_line(std::vector<std::string> arguments);

}  // namespace heed
