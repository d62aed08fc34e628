#include "experiments/list.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "autograd/check.hpp"
#include "experiments/data/catalogue.hpp"
#include "experiments/experiment.hpp"
#include "experiments/nearest.hpp"
#include "experiments/table.hpp"
#include "nn/attention/steps.hpp"
#include "nn/position.hpp"

namespace heed {

namespace {

using Rows = std::vector<std::vector<std::string>>;

/// Every line two columns further right.
std::string indented(std::string const& lines) {
  std::string result;
  for (std::size_t i = 0, end = 0; i < lines.size(); i = end) {
    end = lines.find('\n', i) + 1;
    result += "  " + lines.substr(i, end - i);
  }
  return result;
}

template <class Step>
std::string step_table(std::string const& title) {
  auto kinds = step_kinds<Step>();
  std::ranges::sort(kinds, {}, &StepKind<Step>::name);
  Rows rows;
  for (auto const& kind : kinds) rows.push_back({kind.name, kind.formula, kind.cost, kind.paper});
  return title + "\n" + table(rows) + "\n";
}

std::string list_attention() {
  Rows names;
  for (auto const& name : attention_names())
    names.push_back({name.name, fmt::format("{{score: {}, align: {}, read: {}}}", name.score, name.align, name.read)});
  AttentionSettings settings;
  return "name, formula, cost a head for n queries and m keys, paper\n\n" + step_table<Score>("score: e_ij of query q_i and key k_j") +
         step_table<Align>("align: weights a_ij from scores") + step_table<Read>("read: the context c_i from weights and values v_j") +
         "short names, for `attention: NAME`\n" + table(names) + "\nkeys of `attention: {…}`\n" + indented(describe(settings));
}

std::string list_positions() {
  Rows rows;
  for (auto const& kind : position_kinds()) rows.push_back({kind.name, kind.formula, kind.paper});
  return table(rows);
}

/// The kinds of a choice, each with its keys.
std::string choice_page(Choice const& choice) {
  std::string page;
  for (auto const& option : choice.options) {
    auto const settings = option.make();
    page += fmt::format("{}{}: {}\n", page.empty() ? "" : "\n", option.name, option.help);
    page += indented(describe(*settings));
  }
  return page;
}

std::string list_data() {
  Rows rows;
  for (auto const& entry : catalogue()) {
    std::int64_t bytes = 0;
    for (auto const& file : entry.files) bytes += file.bytes;
    rows.push_back({entry.name, entry.about, fmt::format("{:.1f} MB", static_cast<double>(bytes) * 1e-6), entry.licence});
  }
  return choice_page(data_choice()) + "\ndata sets, for `data: {kind: text, name: NAME}`; fetched when first used\n" + table(rows);
}

std::string list_operations() {
  Rows rows;
  for (auto const& operation : operation_checks()) {
    auto const name = operation.name.substr(0, operation.name.find(" ("));  // "abs (negative)" is a second check of abs
    if (rows.empty() || rows.back().front() != name) rows.push_back({name, operation.formula});
  }
  return table(rows);
}

std::string list_keys() {
  Experiment settings;
  return describe(settings);
}

struct Topic {
  std::string name, help;
  std::string (*page)();
};

std::vector<Topic> const& topics() {
  static std::vector<Topic> const all{
      {"attention", "scores, alignments and reads, and the names of whole variants", list_attention},
      {"positions", "how a model knows where a token stands", list_positions},
      {"models", "kinds of models and their keys", [] { return choice_page(model_choice()); }},
      {"data", "kinds of data and their keys; data sets by name", list_data},
      {"optimizers", "kinds of optimizers and their keys", [] { return choice_page(optimizer_choice()); }},
      {"schedules", "kinds of learning rate schedules and their keys", [] { return choice_page(schedule_choice()); }},
      {"operations", "the differentiable operations of the engine and their formulas", list_operations},
      {"keys", "every key of a configuration file: type, default, meaning", list_keys},
  };
  return all;
}

}  // namespace

std::vector<std::string> list_topics() {
  std::vector<std::string> names;
  for (auto const& topic : topics()) names.push_back(topic.name);
  return names;
}

std::string list(std::string const& topic) {
  if (topic.empty()) {
    Rows rows;
    for (auto const& each : topics()) rows.push_back({"heed list " + each.name, each.help});
    return table(rows);
  }
  auto const found = std::ranges::find(topics(), topic, &Topic::name);
  if (found != topics().end()) return found->page();
  throw ConfigError(
      Place{std::make_shared<std::string>("list")},
      fmt::format("there is no topic '{}'{} (there are {})", topic, did_you_mean(topic, list_topics()), fmt::join(list_topics(), ", ")));
}

}  // namespace heed
