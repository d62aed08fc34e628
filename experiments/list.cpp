#include "experiments/list.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "autograd/check.hpp"
#include "experiments/data/catalogue.hpp"
#include "experiments/experiment.hpp"
#include "experiments/nearest.hpp"
#include "experiments/probe/probe.hpp"
#include "experiments/study/study.hpp"
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

/// The parameters that a step makes, with their shapes in symbols: found by making it with sizes that say which is which.
template <class Step>
std::string parameters_of(StepKind<Step> const& kind, AttentionSettings const& settings) {
  HeadShape const shape{.heads = 2, .width = 3, .context = 5};
  std::map<std::int64_t, std::string> const symbols{{2, "H"}, {3, "d"}, {5, "context"}};
  auto parameters = Parameters::counted(DType::float32);
  kind.make(Scope(parameters), settings, shape);
  std::vector<std::string> result;
  for (auto const& [name, parameter] : parameters.all()) {
    std::vector<std::string> sizes;
    for (auto const size : parameter.shape()) sizes.push_back(symbols.at(size));
    result.push_back(fmt::format("{} [{}]", name, fmt::join(sizes, ", ")));
  }
  return fmt::format("{}", fmt::join(result, ", "));
}

template <class Step>
Rows step_rows() {
  auto kinds = step_kinds<Step>();
  std::ranges::sort(kinds, {}, &StepKind<Step>::name);
  Rows rows;
  for (auto const& kind : kinds) {
    AttentionSettings const usual;
    AttentionSettings learned;
    learned.scale = "learned";
    auto parameters = parameters_of(kind, usual);
    if (auto const more = parameters_of(kind, learned); more != parameters) parameters = more + " if `scale: learned`";
    rows.push_back({kind.name, kind.formula, parameters, kind.cost, kind.smooth, kind.paper});
  }
  return rows;
}

/// A part of the page on attention: its tables are printed for a terminal, and in README.
struct Part {
  std::string title;
  std::vector<std::string> head;
  Rows rows;
};

std::vector<Part> attention_parts() {
  auto const head = [](std::string const& step) {
    return std::vector<std::string>{step, "formula", "parameters", "cost a head", "differentiable", "paper"};
  };
  Rows names;
  for (auto const& name : attention_names())
    names.push_back({name.name, fmt::format("{{score: {}, align: {}, read: {}}}", name.score, name.align, name.read)});
  return {{"score: e_ij of query q_i and key k_j; n queries, m keys", head("score"), step_rows<Score>()},
          {"align: weights a_ij from scores", head("align"), step_rows<Align>()},
          {"read: the context c_i from weights and values v_j", head("read"), step_rows<Read>()},
          {"short names, for `attention: NAME`", {"name", "stands for"}, names}};
}

Part position_part() {
  Rows rows;
  for (auto const& kind : position_kinds()) rows.push_back({kind.name, kind.formula, kind.beyond, kind.paper});
  return {"how a model knows where a token stands", {"position", "formula", "beyond the trained context", "paper"}, rows};
}

std::string printed(Part const& part) {
  Rows rows{part.head};
  rows.insert(rows.end(), part.rows.begin(), part.rows.end());
  return part.title + "\n" + table(rows) + "\n";
}

std::string list_attention() {
  std::string page;
  for (auto const& part : attention_parts()) page += printed(part);
  AttentionSettings settings;
  return page + "keys of `attention: {…}`\n" + indented(describe(settings));
}

std::string list_positions() { return printed(position_part()); }

std::string variants_in_markdown() {
  auto parts = attention_parts();
  parts.push_back(position_part());
  std::string page;
  for (auto const& part : parts) {
    if (!page.empty()) page += '\n';
    page += markdown_row(part.head) + markdown_row(std::vector<std::string>(part.head.size(), "---"));
    for (auto row : part.rows) {
      row.front() = '`' + row.front() + '`';
      page += markdown_row(row);
    }
  }
  return page;
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

std::string list_probes() {
  Rows rows{{"group", "probe", "formula", "meaning"}};
  for (auto const& probe : probes()) rows.push_back({probe.group, probe.name, probe.formula, probe.help});
  ProbeSettings settings;
  return table(rows) + "\nkeys of `probes: {…}`\n" + indented(describe(settings));
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
      {"tasks", "synthetic tasks and their keys", [] { return choice_page(task_choice()); }},
      {"optimizers", "kinds of optimizers and their keys", [] { return choice_page(optimizer_choice()); }},
      {"schedules", "kinds of learning rate schedules and their keys", [] { return choice_page(schedule_choice()); }},
      {"probes", "what can be recorded beside the loss, with formulas and keys", list_probes},
      {"studies", "kinds of studies and their keys", [] { return choice_page(study_choice()); }},
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

std::string list(std::string const& topic, bool markdown) {
  if (markdown && topic != "attention")
    throw ConfigError(Place{std::make_shared<std::string>("--markdown")}, "is of the topic 'attention' alone");
  if (markdown) return variants_in_markdown();
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
