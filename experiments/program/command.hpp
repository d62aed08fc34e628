#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "autograd/parallel.hpp"
#include "autograd/registry.hpp"
#include "experiments/config/config.hpp"
#include "experiments/program/failure.hpp"
#include "experiments/program/run_options.hpp"
#include "nn/settings.hpp"

// CLI11, whose header takes seconds to compile: command.cpp and command_line.cpp alone include it.
namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace heed {

struct BeamSettings;

/// Options of every command, accepted before and after its name.
struct GlobalOptions {
  Folders folders;
  bool quiet = false;
  bool output_given = false;
  std::optional<Index> threads;
};

/// A declared command; parsing stores its options in `options`.
struct ReadCommand {
  std::shared_ptr<void> options;
  std::function<void(GlobalOptions const&)> check;  ///< validates the options; throws ConfigError that names the argument
  std::function<Exit(GlobalOptions const&)> run;
};

/// A command, declared beside its definition: `heed NAME …`.
struct Command {
  int order;          ///< in the list of commands
  std::string name;   ///< "run"
  std::string usage;  ///< what follows the name: "CONFIG [key.path=value …]"
  std::string help, footer;
  std::function<ReadCommand(CLI::App& app)> add;
};
extern template void Registry<Command>::add(Command);  // compiled once

/// Command::add for options of one type: `declare` adds their flags, `check` validates them, `run` executes. Folders and quiet come from
/// the global options; the thread count is set for the process unless the options have their own.
template <class Options>
std::function<ReadCommand(CLI::App&)> with_options(void (*declare)(CLI::App&, Options&), Exit (*run)(Options const&),
                                                   void (*check)(Options&, GlobalOptions const&) = nullptr) {
  return [=](CLI::App& app) {
    auto const options = std::make_shared<Options>();
    if (declare != nullptr) declare(app, *options);
    auto const complete = [=](GlobalOptions const& everywhere) {
      if constexpr (requires { options->folders; }) options->folders = everywhere.folders;
      if constexpr (requires { options->quiet; }) options->quiet = everywhere.quiet;
      if constexpr (requires { options->threads; }) options->threads = everywhere.threads;
      if (check != nullptr) check(*options, everywhere);
    };
    auto const start = [=](GlobalOptions const& everywhere) {
      if constexpr (!requires { options->threads; })
        if (everywhere.threads) set_threads(static_cast<int>(*everywhere.threads));
      return run(*options);
    };
    return ReadCommand{options, complete, start};
  };
}

/// What receives an option's text: a function; a path, a string, or an optional of one, which is set to it; a list, to which it is added.
struct TextTarget {
  template <class Take>
  requires std::is_invocable_v<Take, std::string const&> TextTarget(Take function) : take(std::move(function)) {}
  template <class Target>
  TextTarget(Target& target) : take([&target](std::string const& text) { target = text; }) {}
  template <class Item>
  TextTarget(std::vector<Item>& list) : take([&list](std::string const& text) { list.emplace_back(text); }) {}

  std::function<void(std::string const&)> take;
};

/// A string option; the last occurrence counts.
CLI::Option* add_text(CLI::App& app, std::string const& flag, std::string const& type, std::string const& help, TextTarget const& target);
/// A string option that takes one or several values.
void add_texts(CLI::App& app, std::string const& flag, std::string const& type, std::string const& help, std::vector<std::string>& target);

/// A flag that sets its target to true.
CLI::Option* add_flag(CLI::App& app, std::string const& flag, bool& target, std::string const& help);
/// A flag for the default, which cannot be given together with the flag `other`.
void add_default_flag(CLI::App& app, std::string const& flag, std::string const& other, std::string const& help);

enum class Presence { required, optional };

/// An argument without a flag.
void add_argument(CLI::App& app, std::string const& name, std::string const& help, TextTarget const& target,
                  Presence presence = Presence::required);

/// All arguments that remain, one after another.
void add_arguments(CLI::App& app, std::string const& name, std::string const& help, TextTarget const& target,
                   Presence presence = Presence::required, std::string const& type = "");

/// "90", "90s", "10m", "2h" in seconds. Throws ConfigError about the option.
double seconds_in(std::string const& option, std::string const& text);
/// The command line must have one of these options.
void need_one_of(CLI::App& app, std::string const& flag, std::string const& other);
/// What a command's help says of an option of every command.
void describe_option(CLI::App& app, std::string const& flag, std::string const& help);

/// An option for an Index or a double in [low, high].
template <class Number>
CLI::Option* add_checked(CLI::App& app, std::string const& flag, std::function<void(Number)> take, double low, double high,
                         std::string const& help);
/// The same, which sets a target.
template <class Number, class Target>
CLI::Option* add_number(CLI::App& app, std::string const& flag, Target& target, double low, double high, std::string const& help) {
  return add_checked(app, flag, std::function<void(Number)>([&target](Number number) { target = number; }), low, high, help);
}

/// An option with a fixed set of words.
void add_word(CLI::App& app, std::string const& flag, std::string& target, std::vector<std::string> words, std::string const& help);

/// --weights: which of a run's weights.
void add_weights(CLI::App& app, std::string& target);
/// --beam and --length-penalty.
void add_beam(CLI::App& app, BeamSettings& beam);

/// Since 2.6 CLI11 parses a string in brackets as a list: appends a mark to such arguments, which add_text() removes.
void mark_brackets(std::vector<std::string>& arguments);
std::string unmarked(std::string text);

/// A kind of file for `heed run` and `heed check` other than that of a run or an ablation, declared in its own folder.
struct FileKind {
  std::string name;  ///< the key that identifies such files: "study"
  Exit (*run)(RunOptions const& options);
  Exit (*check)(RunOptions const& options);
  std::unique_ptr<Settings> (*settings)();  ///< default settings of a whole file, for its schema; null: it has keys of an ablation, too
  Exit (*plan)(RunOptions const& options) = nullptr;  ///< `heed plan`; null: there is nothing to plan
};
/// The kind of a file; null: none of these.
inline FileKind const* file_kind_of(Document const& document) {
  auto const& all = Registry<FileKind>::all();
  auto const kind = std::ranges::find_if(all, [&](FileKind const& each) { return document.root.entry(each.name) != nullptr; });
  return kind == all.end() ? nullptr : &*kind;
}

/// An entry of a topic: `heed list TOPIC NAME`.
struct ListEntry {
  std::string name;
  std::function<std::string()> page;
};

/// A topic of `heed list`, declared in the folder that provides it.
struct ListTopic {
  int order;  ///< among the others
  std::string name, help;
  std::function<std::string()> page;
  std::function<std::vector<ListEntry>()> entries = {};  ///< empty: entries have no page of their own
};
extern template void Registry<ListTopic>::add(ListTopic);  // compiled once

/// A line for each kind of a choice; and one page per kind with its keys.
std::string choice_page(Choice const& choice, std::string const& topic);
std::vector<ListEntry> choice_entries(Choice const& choice);
/// A topic that lists the kinds of a choice.
ListTopic choice_topic(int order, std::string const& name, std::string const& help, Choice (*choice)());

}  // namespace heed
