#include "experiments/command_line.hpp"

#include <algorithm>
#include <map>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "experiments/build_info.hpp"
#include "experiments/list.hpp"
#include "experiments/nearest.hpp"
#include "experiments/scalar.hpp"

namespace heed {

namespace {

ConfigError refusal(std::string const& argument, std::string const& message) { return {Place{std::make_shared<std::string>(argument)}, message}; }

/// CLI11's pages with usage lines of our own.
class Pages : public CLI::Formatter {
 public:
  Pages() { column_width(26); }
  std::string make_usage(CLI::App const* app, std::string name) const override {
    static std::map<std::string, std::string> const usages{
        {"heed", "heed COMMAND …"},
        {"run", "heed run CONFIG [key.path=value …]"},
        {"check", "heed check CONFIG [key.path=value …]"},
        {"sample", "heed sample RUN [--prompt TEXT …]"},
        {"list", "heed list [TOPIC]"},
    };
    auto const found = usages.find(app->get_name());
    return "\nusage: " + (found == usages.end() ? name : found->second) + "\n";
  }
  std::string make_option_opts(CLI::Option const* option) const override { return option->get_type_size() == 0 ? "" : " " + option->get_type_name(); }
  std::string make_subcommand(CLI::App const* sub) const override {
    return fmt::format("  {:<{}}{}\n", sub->get_name(), get_column_width() - 2, sub->get_description());
  }
};

/// An option with a text, of which the last one given counts.
CLI::Option* add_text(CLI::App& app, std::string const& flag, std::string const& type, std::string const& help, std::function<void(std::string const&)> take) {
  return app.add_option_function<std::string>(flag, std::move(take), help)->type_name(type)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

/// An option with a number, described as the fields of configurations are.
void add_number(CLI::App& app, std::string const& flag, Field const& field) {
  add_text(app, flag, "N", field.help, [flag, field](std::string const& text) {
    auto const value = Yaml::scalar(text);
    bool const read = std::visit(
        [&](auto* target) {
          using T = std::remove_pointer_t<decltype(target)>;
          if constexpr (std::is_same_v<T, double> || std::is_same_v<T, std::int64_t> || std::is_same_v<T, std::optional<std::int64_t>>)
            return !read_value(value, field, *target);
          else
            return false;
        },
        field.target);
    if (!read || !in_range(field)) throw refusal(flag, fmt::format("wants {}, but found {}", wanted(field), found(value)));
  });
}

/// What every command takes, before its name and after.
void add_everywhere(CLI::App& app, CommandLine& line) {
  auto const group = [](CLI::Option* option) { option->group("everywhere"); };
  app.set_help_flag();
  group(app.set_help_flag("-h,--help", "this page"));
  group(add_text(app, "--output", "DIR", "where runs are kept (default: runs)", [&](std::string const& folder) { line.run.places.output = folder; }));
  group(add_text(app, "--data", "DIR", "where data are looked for (default: $HEED_DATA, then a cache folder)", [&](std::string const& folder) {
    std::error_code unreadable;
    if (!std::filesystem::is_directory(folder, unreadable)) throw refusal("--data", fmt::format("there is no folder '{}'", folder));
    line.run.places.data = folder;
  }));
  add_number(app, "--threads", {.name = "threads", .target = &line.threads, .help = "threads to compute with (default: all cores)", .least = 1, .greatest = 1024});
  group(app.get_option("--threads"));
  group(app.add_flag("--quiet", line.run.quiet, "no progress and no results on the terminal"));
}

CLI::App& add_command(CLI::App& app, CommandLine& line, std::string const& name, std::string const& help) {
  auto& command = *app.add_subcommand(name, help);
  command.allow_extras();
  add_everywhere(command, line);
  return command;
}

void add_config(CLI::App& command, CommandLine& line) {
  command.add_option_function<std::string>(
             "CONFIG", [&](std::string const& file) { line.run.config = file; }, "a YAML file")
      ->required()
      ->type_name("");
  command.add_option("key.path=value", line.run.overrides, "replaces what the file says, e.g. train.steps=500")->type_name("")->allow_extra_args(false)->expected(0, 1 << 20);
}

void add_commands(CLI::App& app, CommandLine& line) {
  auto& run = add_command(app, line, "run", "train what a file describes, or go on where it was cut off");
  add_config(run, line);
  run.add_flag("--fresh", line.run.fresh, "put an old run of this name aside and begin anew");
  run.add_flag("--resume", std::string("go on from the last checkpoint (the default)"))->excludes("--fresh");
  run.footer(
      "The run is left in DIR/NAME: config.yaml, metrics.jsonl, checkpoint.safetensors, summary.json.\n"
      "Ctrl-C finishes the step and saves; the same command goes on from there.\n\n"
      "examples:\n"
      "  heed run configs/gpt/grammar.yaml\n"
      "  heed run configs/gpt/shakespeare.yaml seed=2 name=shakespeare-2\n"
      "  heed run configs/gpt/grammar.yaml 'model.attention={score: scaled_dot, scale: inverse}' name=inverse");

  auto& check = add_command(app, line, "check", "validate a file and print it with everything it leaves to defaults; train nothing");
  add_config(check, line);
  check.footer("example:\n  heed check configs/gpt/grammar.yaml model.layers=6");

  auto& sample = add_command(app, line, "sample", "write text with a trained model");
  auto& options = line.sample;
  sample.add_option_function<std::string>(
            "RUN", [&](std::string const& folder) { options.run = folder; }, "a run's folder or name, or its checkpoint")
      ->required()
      ->type_name("");
  sample.add_option("--prompt", options.prompts, "text to continue; several: one after the other (default: a new line, or the start of a sentence)")
      ->type_name("TEXT …")
      ->allow_extra_args(false);  // else CLI11 takes "[a, b]" for a list
  add_number(sample, "--tokens", {.name = "tokens", .target = &options.tokens, .help = "at most so many after the prompt (default: 500, or a sentence)", .least = 0, .greatest = 1e9});
  add_number(sample, "--count", {.name = "count", .target = &options.count, .help = "samples of each prompt (default: 1, of sentences 10)", .least = 0, .greatest = 1e9});
  auto& sampling = options.sampling;
  add_number(sample, "--temperature",
             {.name = "temperature", .target = &sampling.temperature, .help = "1: the model's own probabilities (default); below: surer; 0: the most probable token, always", .least = 0, .greatest = 1e6});
  add_number(sample, "--top-k", {.name = "top_k", .target = &sampling.top_k, .help = "only the N most probable tokens", .least = 1, .greatest = 1e9});
  add_number(sample, "--top-p", {.name = "top_p", .target = &sampling.top_p, .help = "only the fewest tokens that have this share of the probability", .least = 1e-9, .greatest = 1});
  add_number(sample, "--seed", {.name = "seed", .target = &options.seed, .help = "the same seed writes the same text (default: 1)", .least = 0, .greatest = 9e15});
  sample.footer(
      "examples:\n"
      "  heed sample runs/shakespeare --prompt \"ROMEO:\" \"JULIET:\" --tokens 300 --temperature 0.8\n"
      "  heed sample grammar --prompt \"the dogs that\" --count 5");

  auto& list = add_command(app, line, "list", "what there is: attention, positions, models, data, keys, …");
  list.add_option("TOPIC", line.topic, fmt::format("{}", fmt::join(list_topics(), ", ")))->type_name("");
  list.footer("examples:\n  heed list attention\n  heed list keys | less");
}

std::string version() {
  auto const& info = build_info();
  auto const revision = info.revision.empty() ? "unknown revision" : "revision " + info.revision.substr(0, 12) + (info.dirty ? ", modified" : "");
  return fmt::format("heed 0.1 ({}; {}, {})\n", revision, info.compiler, info.build_type);
}

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
    throw refusal(name, "there is no such option" + hint);
  }
  if (command != nullptr) throw refusal(argument, fmt::format("is one argument too many (see heed {} --help)", command->get_name()));
  std::vector<std::string> names;
  for (auto const* sub : app.get_subcommands([](CLI::App const*) { return true; })) names.push_back(sub->get_name());
  throw refusal(argument, fmt::format("there is no such command{} (there are {})", did_you_mean(argument, names), fmt::join(names, ", ")));
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
  app.add_flag("--version", asks_version, "version and revision")->group("everywhere");
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
  std::ranges::reverse(arguments);  // the order that CLI11 wants
  try {
    app.parse(arguments);
  } catch (CLI::CallForHelp const&) {
    line.page = app.help();
    return line;
  } catch (CLI::ParseError const& error) {
    auto const chosen = app.get_subcommands();
    auto const name = chosen.empty() ? "heed" : "heed " + chosen.front()->get_name();
    throw refusal(name, fmt::format("{} (see {} --help)", error.what(), name));
  }
  auto const chosen = app.get_subcommands();
  auto const* const command = chosen.empty() ? nullptr : chosen.front();
  if (auto const extras = app.remaining(true); !extras.empty()) refuse_extra(app, command, extras.front());
  if (asks_version) {
    line.page = version();
    return line;
  }
  if (command == nullptr) throw refusal("heed", "a command is missing: run, check, sample or list (see heed --help)");
  line.command = command->get_name();
  line.sample.places = line.run.places;
  return line;
}

}  // namespace heed
