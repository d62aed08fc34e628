#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "autograd/registry.hpp"
#include "experiments/config/scalar.hpp"
#include "experiments/run/session.hpp"

namespace heed {

/// What every command takes, before its name and after.
struct GlobalOptions {
  Places places;
  bool quiet = false;
  bool output_given = false;
  std::optional<std::int64_t> threads;
};

/// A command whose arguments are declared: they are read into `options`.
struct ReadCommand {
  std::shared_ptr<void> options;
  std::function<void(GlobalOptions const&)> check;  ///< of what was read; throws ConfigError that names the argument
  std::function<Exit(GlobalOptions const&)> run;
};

/// A command, declared beside its definition: `heed NAME …`.
struct Command {
  int place;          ///< among the others, where they are listed
  std::string name;   ///< "run"
  std::string usage;  ///< what follows the name: "CONFIG [key.path=value …]"
  std::string help, footer;
  std::function<ReadCommand(CLI::App& app)> add;

  int order() const { return place; }
};

/// Command::add of options of a type: `declare` their flags; `check` what was read, if there is more to check; and `run`. Places and quiet
/// are everywhere's. Unless the options have threads of their own, those are set for the process.
template <class Options>
std::function<ReadCommand(CLI::App&)> with_options(void (*declare)(CLI::App&, Options&), Exit (*run)(Options const&),
                                                   void (*check)(Options&, GlobalOptions const&) = nullptr);

/// An option with a string, of which the last one given counts.
CLI::Option* add_text(CLI::App& app, std::string const& flag, std::string const& type, std::string const& help,
                      std::function<void(std::string const&)> take);
/// Sets a target from its string: a path, a string, or an optional of one.
template <class Target>
requires(!std::is_invocable_v<Target, std::string const&>) CLI::Option* add_text(CLI::App& app, std::string const& flag,
                                                                                 std::string const& type, std::string const& help,
                                                                                 Target& target) {
  return add_text(app, flag, type, help, [&target](std::string const& text) { target = text; });
}
/// An argument that is required.
template <class Target>
void add_argument(CLI::App& app, std::string const& name, std::string const& help, Target& target) {
  app.add_option_function<std::string>(
         name, [&target](std::string const& text) { target = text; }, help)
      ->required()
      ->type_name("");
}

/// An option with an integer or a real number in [least, greatest].
template <class Number, class Target>
CLI::Option* add_number(CLI::App& app, std::string const& flag, Target& target, double least, double greatest, std::string const& help) {
  return add_text(app, flag, "N", help, [=, &target](std::string const& text) {
    Number number{};
    Field const field{.name = flag, .target = &number, .least = least, .greatest = greatest};
    auto const value = Yaml::scalar(text);
    if (read_value(value, field, number) || !in_range(field))
      throw ConfigError(flag, fmt::format("wants {}, but found {}", wanted(field), found(value)));
    target = number;
  });
}

/// An option that takes one of some words.
void add_word(CLI::App& app, std::string const& flag, std::string& target, std::vector<std::string> words, std::string const& help);

/// CLI11 from 2.6 on takes a string in brackets for a list of strings: until it has parsed, it ends with a mark, which add_text() takes
/// away.
void mark_brackets(std::vector<std::string>& arguments);
std::string unmarked(std::string text);

/// Sets the threads of the process, where a number was given.
void set_threads_of(GlobalOptions const& everywhere);

template <class Options>
std::function<ReadCommand(CLI::App&)> with_options(void (*declare)(CLI::App&, Options&), Exit (*run)(Options const&),
                                                   void (*check)(Options&, GlobalOptions const&)) {
  return [=](CLI::App& app) {
    auto const options = std::make_shared<Options>();
    if (declare != nullptr) declare(app, *options);
    auto const complete = [=](GlobalOptions const& everywhere) {
      if constexpr (requires { options->places; }) options->places = everywhere.places;
      if constexpr (requires { options->quiet; }) options->quiet = everywhere.quiet;
      if constexpr (requires { options->threads; }) options->threads = everywhere.threads;
      if (check != nullptr) check(*options, everywhere);
    };
    auto const start = [=](GlobalOptions const& everywhere) {
      if constexpr (!requires { options->threads; }) set_threads_of(everywhere);
      return run(*options);
    };
    return ReadCommand{options, complete, start};
  };
}

}  // namespace heed
