#include "experiments/program/command.hpp"

#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>

#include "experiments/config/nearest.hpp"
#include "experiments/config/scalar.hpp"
#include "experiments/config/table.hpp"
#include "nn/decode.hpp"
#include "nn/files/number.hpp"

namespace heed {

template void Registry<Command>::add(Command);
template void Registry<ListTopic>::add(ListTopic);

namespace {

constexpr char literal_mark = '\x03';

}  // namespace

CLI::Option* add_text(CLI::App& app, std::string const& flag, std::string const& type, std::string const& help, TextTarget const& target) {
  auto const take = [target](std::string const& text) { target.take(unmarked(text)); };
  return app.add_option_function<std::string>(flag, take, help)->type_name(type)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

template <class Number>
CLI::Option* add_checked(CLI::App& app, std::string const& flag, std::function<void(Number)> take, double low, double high,
                         std::string const& help) {
  return add_text(app, flag, "N", help, [=, take = std::move(take)](std::string const& text) {
    Number number{};
    Field const field = heed::field(&number, flag).in(low, high);
    auto const value = Yaml::scalar(text);
    if (read_value(value, field)) throw ConfigError(flag, fmt::format("wants {}, but found {}", wanted(field), found(value)));
    take(number);
  });
}
template CLI::Option* add_checked(CLI::App&, std::string const&, std::function<void(Index)>, double, double, std::string const&);
template CLI::Option* add_checked(CLI::App&, std::string const&, std::function<void(double)>, double, double, std::string const&);

void add_texts(CLI::App& app, std::string const& flag, std::string const& type, std::string const& help, std::vector<std::string>& target) {
  app.add_option(flag, target, help)->type_name(type)->expected(1, 1 << 20)->allow_extra_args(false);
}

CLI::Option* add_flag(CLI::App& app, std::string const& flag, bool& target, std::string const& help) {
  return app.add_flag(flag, target, help);
}

void add_default_flag(CLI::App& app, std::string const& flag, std::string const& other, std::string const& help) {
  app.add_flag(flag)->description(help)->excludes(other);
}

void add_argument(CLI::App& app, std::string const& name, std::string const& help, TextTarget const& target, Presence presence) {
  auto const take = [target](std::string const& text) { target.take(unmarked(text)); };
  app.add_option_function<std::string>(name, take, help)->required(presence == Presence::required)->type_name("");
}

void add_arguments(CLI::App& app, std::string const& name, std::string const& help, TextTarget const& target, Presence presence,
                   std::string const& type) {
  auto const take = [target](std::vector<std::string> const& all) {
    for (auto const& text : all) target.take(unmarked(text));
  };
  app.add_option_function<std::vector<std::string>>(name, take, help)->required(presence == Presence::required)->type_name(type);
}

void need_one_of(CLI::App& app, std::string const& flag, std::string const& other) {
  app.callback([one = app.get_option(flag), two = app.get_option(other), what = flag + " or " + other] {
    if (one->count() + two->count() == 0) throw CLI::RequiredError(what);
  });
}

void describe_option(CLI::App& app, std::string const& flag, std::string const& help) { app.get_option(flag)->description(help); }

void add_word(CLI::App& app, std::string const& flag, std::string& target, std::vector<std::string> words, std::string const& help) {
  add_text(app, flag, "NAME", help, [=, &target](std::string const& text) {
    if (std::ranges::find(words, text) == words.end())
      throw ConfigError(flag, fmt::format("wants one of {}, but found '{}'{}", fmt::join(words, ", "), text, did_you_mean(text, words)));
    target = text;
  });
}

void add_weights(CLI::App& app, std::string& target) {
  add_word(app, "--weights", target, {"average", "last", "best"},
           "last, best (of the best evaluation; the default with train.keep: best) or average (the running average; otherwise the default "
           "with train.ema)");
}

void add_beam(CLI::App& app, BeamSettings& beam) {
  add_number<Index>(app, "--beam", beam.width, 1, 1000, "width of beam search (default: 1, greedy decoding)");
  add_number<double>(app, "--length-penalty", beam.length_penalty, 0, 100,
                     "length penalty of beam search; 0: none; a larger one prefers longer texts (default: 0.6)");
}

void mark_brackets(std::vector<std::string>& arguments) {
  for (std::string& text : arguments)
    if (text.starts_with('[') && text.ends_with(']')) text += literal_mark;
}

std::string unmarked(std::string text) {
  if (text.ends_with(literal_mark)) text.pop_back();
  return text;
}

double seconds_in(std::string const& option, std::string const& text) {
  auto const unit = text.empty() ? ' ' : text.back();
  double const factor = unit == 'h' ? 3600 : unit == 'm' ? 60 : 1;
  bool const has_unit = unit == 'h' || unit == 'm' || unit == 's';
  auto const number = parsed_number<double>(text.substr(0, text.size() - (has_unit ? 1 : 0)));
  if (!number || !(*number > 0)) throw ConfigError(option, fmt::format("wants a time, like 90s, 10m or 2h, found '{}'", text));
  return *number * factor;
}

std::string choice_page(Choice const& choice, std::string const& topic) {
  auto const rows = mapped(choice.options, [](auto const& option) { return std::vector{option.name, option.help}; });
  return table(rows) + fmt::format("\nheed list {} NAME: its keys, with types, ranges, defaults and meanings\n", topic);
}

std::vector<ListEntry> choice_entries(Choice const& choice) {
  std::vector<ListEntry> entries;
  for (auto const& option : choice.options) {
    entries.push_back({option.name, [option] {
                         auto const settings = option.make();
                         return option.name + ": " + option.help + "\n" + describe(*settings, 2);
                       }});
  }
  return entries;
}

ListTopic choice_topic(int order, std::string const& name, std::string const& help, Choice (*choice)()) {
  return {order, name, help, [=] { return choice_page(choice(), name); }, [=] { return choice_entries(choice()); }};
}

}  // namespace heed
