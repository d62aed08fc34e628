#include "experiments/commands/command_line.hpp"

#include <algorithm>
#include <map>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/processor.hpp"
#include "autograd/products.hpp"
#include "experiments/commands/command_options.hpp"
#include "experiments/config/build_info.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/run/system.hpp"
#include "experiments/text/table.hpp"

namespace heed {

namespace {

/// Pages of help: what the command does, how it is called, its arguments and options in aligned columns, examples.
class Pages : public CLI::FormatterBase {
 public:
  std::string make_help(CLI::App const* app, std::string, CLI::AppFormatMode) const override {
    static std::map<std::string, std::string> const usages{
        {"heed", "heed COMMAND …"},
        {"run", "heed run CONFIG [key.path=value …]"},
        {"plan", "heed plan CONFIG [key.path=value …]"},
        {"check", "heed check CONFIG [key.path=value …]"},
        {"report", "heed report DIR …"},
        {"evaluate", "heed evaluate RUN"},
        {"sample", "heed sample RUN [--prompt TEXT …]"},
        {"translate", "heed translate RUN"},
        {"inspect", "heed inspect RUN --text TEXT | --row N"},
        {"bench", "heed bench [TOPIC [NAME …]]"},
        {"compare", "heed compare RUN …"},
        {"clean", "heed clean ABLATION …"},
        {"schema", "heed schema"},
        {"list", "heed list [TOPIC [NAME]]"},
    };
    Rows commands, arguments, options, everywhere;
    for (auto const* command : app->get_subcommands([](CLI::App const*) { return true; }))
      commands.push_back({command->get_name(), command->get_description()});
    for (auto const* option : app->get_options()) {
      auto& rows = option->get_positional() ? arguments : option->get_group() == "everywhere" ? everywhere : options;
      rows.push_back({shown(*option), option->get_description()});
    }
    return fmt::format("{}\n\nusage: {}\n{}{}{}{}\n{}\n", app->get_description(), usages.at(app->get_name()), section("commands", commands),
                       section("arguments", arguments), section("options", options), section("everywhere", everywhere), app->get_footer());
  }

 private:
  using Rows = std::vector<std::vector<std::string>>;
  /// An option with what follows it. An argument by its name, or by its type where the name may not say it: CLI11 2.4 lets none have a '='.
  static std::string shown(CLI::Option const& option) {
    auto const type = option.get_type_name();
    if (type.empty()) return option.get_name();
    return option.get_positional() ? type : option.get_name() + " " + type;
  }
  static std::string section(std::string const& title, Rows const& rows) {
    return rows.empty() ? "" : fmt::format("\n{}:\n{}", title, table(rows));
  }
};

}  // namespace

std::string version() {
  auto const& info = build_info();
  auto const revision =
      info.revision.empty() ? "unknown revision" : "revision " + info.revision.substr(0, 12) + (info.dirty ? ", modified" : "");
  return fmt::format("heed 0.1 ({}; {}, {})\n", revision, info.compiler, info.build_type);
}

std::string version_page() {
  auto const& info = build_info();
  return version() + table({{"compiler", info.compiler},
                            {"xtensor", info.xtensor},
                            {"xsimd", info.xsimd},
                            {"matrix library", matrix_library()},
                            {"processor", processor_name()},
                            {"system", system_name()}});
}

namespace {

/// What nothing took: a misspelt command or option, or one argument too many.
[[noreturn]] void refuse_extra(CLI::App const& app, CLI::App const* command, std::string const& argument) {
  if (argument.starts_with('-') && argument.size() > 1) {
    auto const name = argument.substr(0, argument.find('='));
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
  std::vector<std::string> names;
  for (auto const* sub : app.get_subcommands([](CLI::App const*) { return true; })) names.push_back(sub->get_name());
  throw ConfigError(argument,
                    fmt::format("there is no such command{} (there are {})", did_you_mean(argument, names), fmt::join(names, ", ")));
}

/// What CLI11 cannot read.
[[noreturn]] void refuse_parse(CLI::App const& app, CLI::ParseError const& error) {
  std::string const what = error.what();
  if (dynamic_cast<CLI::ArgumentMismatch const*>(&error) != nullptr)
    throw ConfigError(what.substr(0, what.find(':')), "a value is missing");
  auto const chosen = app.get_subcommands();
  throw ConfigError(chosen.empty() ? "command line" : chosen.front()->get_name(), fmt::format("{} (see heed --help)", what));
}

/// CLI11 from 2.6 on takes a text in brackets for a list of texts: until it has parsed, it ends with a mark.
constexpr char end_of_text = '\x03';
void mark_brackets(std::vector<std::string>& arguments) {
  for (std::string& text : arguments)
    if (text.starts_with('[') && text.ends_with(']')) text += end_of_text;
}
void unmark_brackets(std::vector<std::string>& texts) {
  for (std::string& text : texts)
    if (text.ends_with(end_of_text)) text.pop_back();
}

/// `heed sample --prompt TEXT RUN`: the run is not a prompt.
void find_run(SampleOptions& options) {
  if (!options.run.empty()) return;
  if (options.prompts.size() < 2) throw ConfigError("sample", "RUN is required (see heed sample --help)");
  options.run = options.prompts.back();
  options.prompts.pop_back();
}

}  // namespace

CommandLine parse_command_line(std::vector<std::string> arguments) {
  CommandLine line;
  CLI::App app("heed: a sandbox for attention. One YAML file in, a trained model and its measurements out.", "heed");
  app.formatter(std::make_shared<Pages>());
  app.allow_extras();
  app.require_subcommand(0, 1);
  add_everywhere(app, line);
  bool asks_version = false;
  app.add_flag("--version", asks_version, "version, revision, libraries and system")->group("everywhere");
  add_commands(app, line);
  app.footer(
      "examples:\n"
      "  heed run configs/gpt/grammar.yaml                       train a small GPT on an embedded language\n"
      "  heed run configs/gpt/grammar.yaml train.steps=500 seed=2 name=short\n"
      "  heed sample runs/grammar                                sentences from it\n"
      "  heed list attention                                     scores, alignments and reads to choose from\n\n"
      "heed COMMAND --help says more.");

  if (!arguments.empty() && arguments.front() == "help") {  // heed help run
    arguments.erase(arguments.begin());
    arguments.emplace_back("--help");
  }
  if (arguments.empty()) arguments.emplace_back("--help");
  if (arguments.front() == "sample") mark_brackets(arguments);
  std::ranges::reverse(arguments);  // the order that CLI11 wants
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
  if (auto const extras = app.remaining(true); !extras.empty()) refuse_extra(app, command, extras.front());
  if (asks_version) {
    line.page = version_page();
    return line;
  }
  if (command == nullptr)
    throw ConfigError(
        "command line",
        "a command is missing: run, plan, check, report, evaluate, sample, translate, inspect, bench, compare, clean, schema or list "
        "(see heed --help)");
  line.command = command->get_name();
  unmark_brackets(line.sample.prompts);
  if (line.command == "sample") find_run(line.sample);
  line.run.threads = line.threads;
  line.evaluate.places = line.sample.places = line.translate.places = line.inspect.places = line.bench.places = line.report.places =
      line.run.places;
  line.evaluate.quiet = line.inspect.quiet = line.report.quiet = line.run.quiet;
  return line;
}

}  // namespace heed
