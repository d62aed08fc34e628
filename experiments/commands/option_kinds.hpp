#pragma once

#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "experiments/commands/command_line.hpp"
#include "experiments/config/scalar.hpp"

namespace heed {

/// An option with a text, of which the last one given counts.
CLI::Option* add_text(CLI::App& app, std::string const& flag, std::string const& type, std::string const& help,
                      std::function<void(std::string const&)> take);

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

/// A command with what every command takes.
CLI::App& add_command(CLI::App& app, CommandLine& line, std::string const& name, std::string const& help);

/// The commands that take a trained model or a text: evaluate, sample, translate, export, inspect, tokenize.
void add_model_commands(CLI::App& app, CommandLine& line);

}  // namespace heed
