#include <algorithm>
#include <map>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/blas/products.hpp"
#include "autograd/processor/processor.hpp"
#include "experiments/commands/commands.hpp"
#include "experiments/config/build_info.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/config/table.hpp"
#include "experiments/config/yaml.hpp"
#include "experiments/program/system.hpp"
#include "experiments/train/ranks.hpp"
#include "nn/files/input_file.hpp"

namespace heed {

namespace {

/// Pages of help: what the command does, its usage, its arguments and options in aligned columns, examples.
class Pages : public CLI::FormatterBase {
 public:
  std::string make_help(CLI::App const* app, std::string, CLI::AppFormatMode) const override {
    TableRows subcommands, arguments, options, everywhere;
    for (auto const* command : app->get_subcommands({})) subcommands.push_back({command->get_name(), command->get_description()});
    for (auto const* option : app->get_options()) {
      auto& rows = option->get_positional() ? arguments : option->get_group() == "everywhere" ? everywhere : options;
      rows.push_back({shown(*option), option->get_description()});
    }
    return fmt::format("{}\n\nusage: heed {}\n{}{}{}{}\n{}\n", app->get_description(), usage_of(app->get_name()),
                       section("commands", subcommands), section("arguments", arguments), section("options", options),
                       section("everywhere", everywhere), app->get_footer());
  }

 private:
  static std::string usage_of(std::string const& name) {
    auto const* const command = Registry<Command>::find(name);
    return command == nullptr ? "COMMAND …" : name + (command->usage.empty() ? "" : " " + command->usage);
  }
  /// An option with its type. For an argument its type if it has one, else its name: CLI11 2.4 allows no '=' in names.
  static std::string shown(CLI::Option const& option) {
    auto const type = option.get_type_name();
    if (type.empty()) return option.get_name();
    return option.get_positional() ? type : option.get_name() + " " + type;
  }
  static std::string section(std::string const& title, TableRows const& rows) {
    return rows.empty() ? "" : fmt::format("\n{}:\n{}", title, table(rows));
  }
};

bool is_command(std::string const& argument) { return Registry<Command>::find(argument) != nullptr; }

/// Throws ConfigError if a file comes before its command (`heed good.yaml run`), or if the command is missing.
void check_order(CLI::App const& app, std::vector<std::string> const& arguments) {
  std::size_t first = 0;
  while (first < arguments.size() && arguments[first].starts_with('-')) {
    auto const& flag = arguments[first];
    if (!flag.starts_with("--") || app.get_option_no_throw(flag.substr(0, flag.find('='))) == nullptr) return;
    first += flag.find('=') != flag.npos || flag == "--help" || flag == "--quiet" || flag == "--version" ? 1 : 2;
  }
  if (first >= arguments.size() || is_command(arguments[first])) return;
  auto const command = std::find_if(arguments.begin() + static_cast<std::ptrdiff_t>(first), arguments.end(), is_command);
  if (command != arguments.end())
    throw ConfigError(arguments[first], fmt::format("the command comes first: heed {} {}", *command, arguments[first]));
  if (is_file(arguments[first]))
    throw ConfigError(arguments[first], fmt::format("is a file, and a command is missing before it: heed run {}", arguments[first]));
}

/// Explains an option that a command does not have; "" if there is nothing to explain.
std::string about_option(CLI::App const& app, CLI::App const* command, std::string const& name) {
  for (std::string_view const of_gpus : {"--gpu", "--gpus", "--cuda", "--device", "--mps", "--tpu"})
    if (name == of_gpus) return ": heed runs on CPUs only (--threads sets the number of threads)";
  std::vector<std::string> owners;
  for (auto const* other : app.get_subcommands({}))
    if (other->get_option_no_throw(name) != nullptr) owners.push_back(other->get_name());
  if (owners.empty()) return "";
  return fmt::format("{}; {} {} it", command != nullptr ? " of " + command->get_name() : "", fmt::join(owners, " and "),
                     owners.size() == 1 ? "has" : "have");
}

/// Throws ConfigError for an argument that was not used: a misspelt command or option, or one argument too many.
[[noreturn]] void refuse_extra(CLI::App const& app, CLI::App const* command, std::string const& argument) {
  if (argument.starts_with('-') && argument.size() > 1) {
    auto const name = argument.substr(0, argument.find('='));
    auto const about = name.starts_with("--") && name.size() > 2 ? about_option(app, command, name) : "";
    if (!about.empty()) throw ConfigError(name, "there is no such option" + about);
    std::vector<std::string> known;
    for (auto const* from : {&app, command}) {
      if (from == nullptr) continue;
      for (auto const* option : from->get_options())
        for (auto const& flag : option->get_lnames()) known.push_back("--" + flag);
    }
    auto hint = did_you_mean(name, known);
    if (hint.empty() && command != nullptr && (command->get_name() == "run" || command->get_name() == "check"))
      hint = fmt::format(" (keys of the configuration are written without dashes: {}=value)", name.substr(name.find_first_not_of('-')));
    throw ConfigError(name, "there is no such option" + hint);
  }
  if (command != nullptr) throw ConfigError(argument, fmt::format("is one argument too many (see heed {} --help)", command->get_name()));
  auto const names = Registry<Command>::names();
  throw ConfigError(argument, fmt::format("there is no such command{} (there are {}){}", did_you_mean(argument, names),
                                          fmt::join(names, ", "), built_without()));
}

/// Throws ConfigError for a command line that CLI11 rejects.
[[noreturn]] void refuse_parse(CLI::App const& app, CLI::ParseError const& error) {
  std::string const what = error.what();
  if (dynamic_cast<CLI::ArgumentMismatch const*>(&error) != nullptr)
    throw ConfigError(what.substr(0, what.find(':')), "a value is missing");
  auto const chosen = app.get_subcommands();
  throw ConfigError(chosen.empty() ? "command line" : chosen.front()->get_name(), fmt::format("{} (see heed --help)", what));
}

/// Adds the options of every command, which may stand before and after its name.
void add_everywhere(CLI::App& app, GlobalOptions& everywhere) {
  auto const group = [](CLI::Option* option) { option->group("everywhere"); };
  app.set_help_flag();
  group(app.set_help_flag("-h,--help", "print this help"));
  group(add_text(app, "--output", "DIR", "folder of the runs (default: runs)", [&](std::string const& folder) {
    everywhere.folders.output = folder;
    everywhere.output_given = true;
  }));
  group(add_text(app, "--data", "DIR", "folder of the data (default: $HEED_DATA, then a cache folder)", [&](std::string const& folder) {
    if (!is_folder(folder)) throw ConfigError("--data", fmt::format("there is no folder '{}'", folder));
    everywhere.folders.data = folder;
  }));
  group(add_number<Index>(app, "--threads", everywhere.threads, 1, 1024,
                          "number of threads (default: all cores; for each trial of an ablation: 1)"));
  group(app.add_flag("--quiet", everywhere.quiet, "print neither progress nor results"));
}

/// Output of --version: version() with compiler, libraries, processor and system.
std::string version_page() {
  auto const& info = build_info();
  return version() + table({{"compiler", info.compiler},
                            {"xtensor", info.xtensor},
                            {"xsimd", info.xsimd},
                            {"matrix library", matrix_library()},
                            {"MPI", mpi_version()},
                            {"processor", processor_name()},
                            {"system", system_name()}});
}

}  // namespace

std::string version() {
  auto const& info = build_info();
  auto const revision =
      info.revision.empty() ? "unknown revision" : "revision " + info.revision.substr(0, 12) + (info.dirty ? ", modified" : "");
  return fmt::format("heed 0.1 ({}; {}, {})\n", revision, info.compiler, info.build_type);
}

CommandLine parse_command_line(std::vector<std::string> arguments) {
  CommandLine line;
  CLI::App app("heed: a research sandbox for attention. One YAML file describes a run, an ablation or a study.", "heed");
  app.formatter(std::make_shared<Pages>());
  app.allow_extras();
  app.require_subcommand(0, 1);
  add_everywhere(app, line.everywhere);
  bool asks_version = false;
  app.add_flag("--version", asks_version, "print version, revision, libraries and system")->group("everywhere");
  std::map<std::string, ReadCommand> read;
  for (Command const& command : Registry<Command>::all()) {
    auto& sub = *app.add_subcommand(command.name, command.help);
    sub.allow_extras();
    add_everywhere(sub, line.everywhere);
    read[command.name] = command.add(sub);
    sub.footer(command.footer);
  }
  app.footer(
      "examples:\n"
      "  heed run configs/gpt/grammar.yaml                       train a small GPT on an embedded language\n"
      "  heed run configs/gpt/grammar.yaml train.steps=500 seed=2 name=short\n"
      "  heed sample runs/grammar                                sample sentences from it\n"
      "  heed list attention                                     scores, alignments and reads to choose from\n\n"
      "heed COMMAND --help describes a command.");

  if (!arguments.empty() && arguments.front() == "help") {  // `heed help run` is `heed run --help`
    arguments.erase(arguments.begin());
    arguments.emplace_back("--help");
  }
  if (arguments.empty()) arguments.emplace_back("--help");
  check_order(app, arguments);
  mark_brackets(arguments);
  std::ranges::reverse(arguments);  // the order that CLI11 expects
  try {
    app.parse(arguments);
  } catch (CLI::CallForHelp const&) {
    line.page = app.help();
    return line;
  } catch (CLI::ParseError const& error) {
    refuse_parse(app, error);
  }
  auto const chosen = app.get_subcommands();
  auto const* const command = chosen.empty() ? nullptr : chosen.front();
  if (auto const extras = app.remaining(true); !extras.empty()) refuse_extra(app, command, unmarked(extras.front()));
  if (asks_version) {
    line.page = version_page();
    return line;
  }
  if (command == nullptr)
    throw ConfigError("command line", fmt::format("a command is missing: {} (see heed --help)", listed(Registry<Command>::names(), "or")));
  line.command = command->get_name();
  auto const& [options, check, run] = read.at(line.command);
  check(line.everywhere);
  line.options = options;
  line.run = run;
  return line;
}

}  // namespace heed
