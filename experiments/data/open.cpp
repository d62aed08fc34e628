#include "experiments/data/open.hpp"

#include <cstdio>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/error.hpp"

namespace heed {
namespace {

// By name, because the order in which files register themselves is not defined.
std::map<std::string, DataKind>& kinds() {
  static std::map<std::string, DataKind> all;
  return all;
}

}  // namespace

bool register_data(DataKind kind) {
  auto const name = kind.name;
  if (!kinds().emplace(name, std::move(kind)).second) throw Error("data kind " + name + " is registered twice");
  return true;
}

Choice data_choice() {
  Choice choice;
  for (auto const& [name, kind] : kinds()) choice.options.push_back({name, kind.help, kind.make});
  return choice;
}

Choice task_choice() {
  Choice choice;
  for (auto const& [name, kind] : kinds())
    if (kind.task) choice.options.push_back({name, kind.help, kind.make});
  return choice;
}

std::unique_ptr<Dataset> open_dataset(Choice const& data, DataContext const& context) {
  auto const found = kinds().find(data.kind);
  if (found == kinds().end() || !data.settings) throw Error("data.kind: '" + data.kind + "' is not a kind of data");
  if (context.held_out != "validation" && context.held_out != "test")
    throw Error("data: there is no part '" + context.held_out + "' to hold out; there are validation and test");
  if (context.held_out == "test" && found->second.parts == DataParts::validation)
    throw Error("data.kind: data of kind " + data.kind + " have no test part, validation alone is held out");
  std::vector<std::string> elsewhere;
  DataContext noting = context;
  noting.elsewhere = &elsewhere;
  auto dataset = found->second.open(*data.settings, noting);
  if (!elsewhere.empty() && !context.quiet)
    fmt::print(stderr, "data are taken from where the run has read them, unchanged: {}\n", fmt::join(elsewhere, ", "));
  return dataset;
}

}  // namespace heed
