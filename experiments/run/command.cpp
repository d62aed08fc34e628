#include "experiments/run/command.hpp"

#include <algorithm>

#include <fmt/ranges.h>

#include "autograd/parallel.hpp"
#include "experiments/config/nearest.hpp"

namespace heed {

namespace {

constexpr char end_of_text = '\x03';

}  // namespace

CLI::Option* add_text(CLI::App& app, std::string const& flag, std::string const& type, std::string const& help,
                      std::function<void(std::string const&)> take) {
  return app
      .add_option_function<std::string>(
          flag, [take = std::move(take)](std::string const& text) { take(unmarked(text)); }, help)
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

void mark_brackets(std::vector<std::string>& arguments) {
  for (std::string& text : arguments)
    if (text.starts_with('[') && text.ends_with(']')) text += end_of_text;
}

std::string unmarked(std::string text) {
  if (text.ends_with(end_of_text)) text.pop_back();
  return text;
}

void set_threads_of(GlobalOptions const& everywhere) {
  if (everywhere.threads) set_threads(static_cast<int>(*everywhere.threads));
}

}  // namespace heed
