#include "experiments/commands/option_kinds.hpp"

#include <algorithm>

#include <fmt/ranges.h>

#include "experiments/commands/command_options.hpp"
#include "experiments/config/nearest.hpp"

namespace heed {

CLI::Option* add_text(CLI::App& app, std::string const& flag, std::string const& type, std::string const& help,
                      std::function<void(std::string const&)> take) {
  return app.add_option_function<std::string>(flag, std::move(take), help)
      ->type_name(type)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

void add_word(CLI::App& app, std::string const& flag, std::string& target, std::vector<std::string> words, std::string const& help) {
  add_text(app, flag, "NAME", help, [=, &target](std::string const& text) {
    if (std::ranges::find(words, text) == words.end())
      throw ConfigError(flag, fmt::format("wants one of {}, but found '{}'{}", fmt::join(words, ", "), text, did_you_mean(text, words)));
    target = text;
  });
}

CLI::App& add_command(CLI::App& app, CommandLine& line, std::string const& name, std::string const& help) {
  auto& command = *app.add_subcommand(name, help);
  command.allow_extras();
  add_everywhere(command, line);
  return command;
}

}  // namespace heed
