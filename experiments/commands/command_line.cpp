#include "experiments/commands/command_line.hpp"

#include <algorithm>
#include <map>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/blas/processor.hpp"
#include "autograd/blas/products.hpp"
#include "experiments/commands/command_options.hpp"
#include "experiments/config/build_info.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/config/table.hpp"
#include "experiments/run/system.hpp"

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
        {"export", "heed export RUN --format NAME DIR"},
        {"inspect", "heed inspect RUN --text TEXT | --row N"},
        {"tokenize", "heed tokenize FILE --vocabulary FOLDER | --train N --output FOLDER"},
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

bool has_option(CLI::App const& app, std::string const& flag) {
  return std::ranges::any_of(app.get_options(), [&](CLI::Option const* option) { return option->check_lname(flag.substr(2)); });
}

std::vector<CLI::App const*> commands_of(CLI::App const& app) {
  return app.get_subcommands([](CLI::App const*) { return true; });
}

bool is_command(CLI::App const& app, std::string const& argument) {
  return std::ranges::any_of(commands_of(app), [&](CLI::App const* command) { return command->get_name() == argument; });
}

/// Refuses a file before its command: `heed good.yaml run`.
void check_order(CLI::App const& app, std::vector<std::string> const& arguments) {
  std::size_t first = 0;
  while (first < arguments.size() && arguments[first].starts_with('-')) {
    auto const& flag = arguments[first];
    if (!flag.starts_with("--") || !has_option(app, flag.substr(0, flag.find('=')))) return;
    bool const alone = flag.find('=') != flag.npos || flag == "--help" || flag == "--quiet" || flag == "--version";
    first += alone ? 1 : 2;
  }
  if (first >= arguments.size() || is_command(app, arguments[first])) return;
  auto const command = std::find_if(arguments.begin() + static_cast<std::ptrdiff_t>(first), arguments.end(),
                                    [&](std::string const& argument) { return is_command(app, argument); });
  if (command != arguments.end())
    throw ConfigError(arguments[first], fmt::format("the command comes first: heed {} {}", *command, arguments[first]));
  std::error_code unreadable;
  if (std::filesystem::is_regular_file(arguments[first], unreadable))
    throw ConfigError(arguments[first], fmt::format("is a file, and a command is missing before it: heed run {}", arguments[first]));
}

/// Refuses a change before the file that it changes: `heed run train.steps=5 good.yaml`.
void check_config_first(std::string const& command, RunOptions const& options) {
  std::string const config = options.config.string();
  std::error_code unreadable;
  if (config.find('=') == config.npos || std::filesystem::exists(options.config, unreadable)) return;
  auto const file = std::ranges::find_if(options.overrides, [](std::string const& each) { return each.find('=') == each.npos; });
  throw ConfigError(config, fmt::format("the file comes first, then what changes it: heed {} {} {}", command,
                                        file != options.overrides.end() ? *file : "FILE", config));
}

/// What there is to say of an option that a command does not have; "": nothing.
std::string about_option(CLI::App const& app, CLI::App const* command, std::string const& name) {
  for (std::string_view const of_gpus : {"--gpu", "--gpus", "--cuda", "--device", "--mps", "--tpu"})
    if (name == of_gpus) return ": heed computes on processors only (--threads says on how many of their threads)";
  std::vector<std::string> owners;
  for (auto const* other : commands_of(app))
    if (has_option(*other, name)) owners.push_back(other->get_name());
  if (owners.empty()) return "";
  return fmt::format("{}; {} {} it", command != nullptr ? " of " + command->get_name() : "", fmt::join(owners, " and "),
                     owners.size() == 1 ? "has" : "have");
}

/// What nothing took: a misspelt command or option, or one argument too many.
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
  std::vector<std::string> names;
  for (auto const* sub : commands_of(app)) names.push_back(sub->get_name());
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

/// `heed tokenize` has a vocabulary, or trains one and leaves it in a folder that was named.
void check_tokenize(TokenizeOptions const& options, bool has_output) {
  if (options.train && !options.vocabulary.empty())
    throw ConfigError("--train", "makes a vocabulary: --vocabulary names one that is there");
  if (!options.train && options.vocabulary.empty()) throw ConfigError("tokenize", "--vocabulary or --train is required (see heed --help)");
  if (options.train && !has_output) throw ConfigError("--output", "is needed: the folder for the vocabulary");
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
  check_order(app, arguments);
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
    throw ConfigError("command line",
                      "a command is missing: run, plan, check, report, evaluate, sample, translate, export, inspect, tokenize, bench, "
                      "compare, clean, schema or list "
                      "(see heed --help)");
  line.command = command->get_name();
  unmark_brackets(line.sample.prompts);
  if (line.command == "sample") find_run(line.sample);
  if (line.command == "tokenize")
    check_tokenize(line.tokenize, app.get_option("--output")->count() + command->get_option("--output")->count() > 0);
  if (!line.run.config.empty()) check_config_first(line.command, line.run);
  line.run.threads = line.threads;
  line.evaluate.places = line.sample.places = line.translate.places = line.exported.places = line.inspect.places = line.bench.places =
      line.report.places = line.tokenize.places = line.run.places;
  line.evaluate.quiet = line.exported.quiet = line.inspect.quiet = line.tokenize.quiet = line.report.quiet = line.run.quiet;
  return line;
}

}  // namespace heed
