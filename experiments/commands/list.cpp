#include "experiments/commands/list.hpp"

#include <iostream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/ops/info.hpp"
#include "experiments/ablation/plan.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/config/table.hpp"
#include "experiments/data/catalogue.hpp"
#include "experiments/metric/info.hpp"
#include "experiments/metric/probe/probe.hpp"
#include "experiments/program/command.hpp"
#include "experiments/train/experiment.hpp"
#include "nn/heads/head.hpp"

namespace heed {

namespace {

/// The parameters of a model with default settings; repeated blocks are listed once, as block {i}.
std::string parameters_page(ModelKind const& kind) {
  constexpr Index vocabulary = 65;
  auto parameters = Parameters::counted(DType::float32);
  auto const settings = kind.settings();
  std::vector<PartSpec> data;
  for (InputPart const& part : kind.reads(*settings)) {
    data.push_back({.name = part.name, .classes = vocabulary});
    if (part.picture) data.back().shape = {3, 32, 32};
  }
  kind.make(parameters, *settings, Signature(std::move(data)));
  std::string page = fmt::format("\nparameters by the names that a checkpoint has (shapes of the defaults, with {} tokens)\n", vocabulary);
  TableRows rows;
  for (auto const& [full, parameter] : parameters.all()) {
    auto name = full;
    if (auto const block = name.find("blocks."); block != name.npos) {
      auto const number = block + std::string_view("blocks.").size(), end = name.find('.', number);
      if (name.substr(number, end - number) != "0") continue;
      name.replace(number, end - number, "{i}");
    }
    rows.push_back({name, fmt::format("[{}]", fmt::join(parameter.shape(), ", "))});
  }
  return page + table(rows);
}

/// An entry for each of these, which outlive it.
template <class Named>
std::vector<ListEntry> entries_of(std::vector<Named> const& all, std::string (*page)(Named const&)) {
  return mapped(all, [page](Named const& each) { return ListEntry{each.name, [&each, page] { return page(each); }}; });
}

std::vector<ListEntry> model_entries() {
  auto entries = choice_entries(model_choice());
  for (auto& entry : entries) entry.page = [keys = entry.page, name = entry.name] { return keys() + parameters_page(model_kind(name)); };
  return entries;
}

std::vector<std::string> data_set_row(CatalogueEntry const& entry) {
  Index bytes = 0;
  for (auto const& file : entry.files) bytes += file.bytes;
  return {entry.name, entry.about, fmt::format("{:.1f} MB", static_cast<double>(bytes) * 1e-6), entry.licence};
}

std::string list_data() {
  return choice_page(choice_of<DataKind>(), "data") +
         "\ndata sets, for `data: {kind: text, name: NAME}` or, if labelled, `{kind: examples, name: NAME, …}`; fetched when first used\n" +
         table(mapped(catalogue(), data_set_row));
}

std::vector<ListEntry> data_entries() {
  auto entries = choice_entries(choice_of<DataKind>());
  for (auto const& entry : catalogue()) entries.push_back({entry.name, [&entry] { return table({data_set_row(entry)}); }});
  return entries;
}

std::string list_probes() {
  TableRows rows{{"group", "probe", "formula", "meaning"}};
  for (auto const& probe : Registry<Probe>::all()) rows.push_back({probe.group, probe.name, probe.formula, probe.help});
  ProbeSettings settings;
  return table(rows) + "\nkeys of `probes: {…}`\n" + describe(settings, 2);
}

std::string probe_page(Probe const& probe) {
  return fmt::format("{}: {}\n", probe.name, probe.help) + table({{"formula", probe.formula},
                                                                  {"in YAML", fmt::format("probes: {{{}: [{}]}}", probe.group, probe.name)},
                                                                  {"records", "probe." + probe.records.name},
                                                                  {"unit", probe.records.unit}});
}

std::string metrics_page(std::vector<MetricInfo> const& metrics) {
  TableRows rows{{"metric", "unit", "better", "meaning"}};
  for (auto const& info : metrics) rows.push_back({info.name, info.unit, info.better ? std::string(name(*info.better)) : "", info.help});
  return table(rows);
}

std::string metric_page(MetricInfo const& info) { return metrics_page({info}); }

std::string list_operations() {
  return table(mapped(operations(), [](auto const& each) { return std::vector{std::string(each.name), std::string(each.formula)}; }));
}

/// The keys of one section of the file; of all if it is "".
std::string list_keys(std::string const& section) {
  Experiment settings;
  return describe(settings, 0, section);
}

std::vector<ListEntry> key_entries() {
  return mapped(Experiment().fields(), [](Field const& field) {
    return ListEntry{field.name, [section = field.name] { return list_keys(section); }};
  });
}

std::string const ablation_example =
    "ablation: scale\nbase: ../gpt/grammar.yaml\nvary:\n  model.attention.scale: [none, rsqrt, inverse]\nseeds: 6\n"
    "baseline: rsqrt\n";

/// `quote`: around keys and examples.
TableRows ablation_rows(std::string const& quote) {
  TableRows rows{{"key", "meaning", "example"}};
  for (auto const& key : ablation_keys()) rows.push_back({quote + key.name + quote, key.help, quote + key.example + quote});
  return rows;
}

std::string list_ablation() { return table(ablation_rows("")) + "\na whole file\n" + indented(ablation_example); }

std::string ablation_page(AblationKey const& key) { return key.name + ": " + key.help + "\n" + indented(key.example + "\n"); }

Declared<ListTopic> const models_topic{
    {4, "models", "models; with NAME: its keys and parameters", [] { return choice_page(model_choice(), "models"); }, model_entries}};
Declared<ListTopic> const heads_topic{choice_topic(
    5, "heads", "output heads of text models, for `model: {head: NAME}`; with NAME: its keys", [] { return choice_of<HeadKind>(); })};
Declared<ListTopic> const data_topic{{6, "data", "kinds of data, and data sets by name; with NAME: its keys", list_data, data_entries}};
Declared<ListTopic> const tasks_topic{choice_topic(7, "tasks", "synthetic tasks; with NAME: its keys", task_choice)};
Declared<ListTopic> const tokenizers_topic{choice_topic(
    8, "tokenizers", "tokenizers, for `data: {kind: text, tokenizer: NAME}`; with NAME: its keys", [] { return tokenizer_choice(); })};
Declared<ListTopic> const optimizers_topic{choice_topic(10, "optimizers", "optimizers; with NAME: its keys", optimizer_choice)};
Declared<ListTopic> const schedules_topic{choice_topic(11, "schedules", "learning-rate schedules; with NAME: its keys", schedule_choice)};
Declared<ListTopic> const probes_topic{{12, "probes", "probes, recorded beside the loss, with formulas and keys", list_probes,
                                        [] { return entries_of(Registry<Probe>::all(), probe_page); }}};
Declared<ListTopic> const metrics_topic{{13, "metrics", "metrics that runs record: unit, and whether lower or higher is better",
                                         [] { return metrics_page(Registry<MetricInfo>::all()); },
                                         [] { return entries_of(Registry<MetricInfo>::all(), metric_page); }}};
Declared<ListTopic> const operations_topic{
    {15, "operations", "the differentiable operations of the engine and their formulas", list_operations}};
Declared<ListTopic> const ablation_topic{{17, "ablation", "every key of an ablation's file, with an example", list_ablation,
                                          [] { return entries_of(ablation_keys(), ablation_page); }}};
Declared<ListTopic> const keys_topic{{18, "keys", "every key of a configuration file, or of one section: type, default, meaning",
                                      [] { return list_keys(""); }, key_entries}};

std::string entry_page(ListTopic const& topic, std::string const& name) {
  auto const entries = topic.entries ? topic.entries() : std::vector<ListEntry>{};
  if (entries.empty()) throw ConfigError("list", fmt::format("the topic '{}' has a single page: heed list {}", topic.name, topic.name));
  expect_known("list: " + topic.name, name, names_of(entries));
  std::string page;
  for (auto const& entry : entries)
    if (entry.name == name) page += (page.empty() ? "" : "\n") + entry.page();
  return page;
}

struct ListOptions {
  std::string topic, name;
  bool markdown = false;
};

void declare_list(CLI::App& app, ListOptions& options) {
  add_argument(app, "TOPIC", fmt::format("{}", fmt::join(Registry<ListTopic>::names(), ", ")), options.topic, Presence::optional);
  add_argument(app, "NAME", "details of one entry: gpt, additive, copy, …", options.name, Presence::optional);
  add_flag(app, "--markdown", options.markdown, "attention, ablation: print the tables of the README files");
}

Declared<Command> const list_command{{.order = 18,
                                      .name = "list",
                                      .usage = "[TOPIC [NAME]]",
                                      .help = "list what is available: attention, positions, models, data, metrics, keys, …",
                                      .footer = "examples:\n  heed list attention\n  heed list models gpt\n  heed list keys | less",
                                      .add = with_options<ListOptions>(declare_list, [](ListOptions const& options) {
                                        std::cout << list(options.topic, options.name, options.markdown);
                                        return Exit::done;
                                      })}};

}  // namespace

std::string list(std::string const& topic, std::string const& name, bool markdown) {
  if (markdown && topic != "attention" && topic != "ablation")
    throw ConfigError("--markdown", "applies only to the topics 'attention' and 'ablation'");
  if (markdown) return topic == "ablation" ? markdown_table(ablation_rows("`")) : variants_in_markdown();
  if (topic.empty()) {
    TableRows rows;
    for (auto const& each : Registry<ListTopic>::all())
      rows.push_back({"heed list " + each.name + (each.entries ? " [NAME]" : ""), each.help});
    return table(rows);
  }
  expect_known("list", topic, Registry<ListTopic>::names(), "topic");
  auto const& found = *Registry<ListTopic>::find(topic);
  return name.empty() ? found.page() : entry_page(found, name);
}

}  // namespace heed
