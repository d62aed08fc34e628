#include "experiments/data/open.hpp"

#include <cstdio>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/error.hpp"

namespace heed {

template void Registry<DataKind>::add(DataKind);

Choice task_choice() {
  return choice_of<DataKind>("", [](DataKind const& kind) { return kind.task; });
}

std::unique_ptr<Dataset> open_dataset(Choice const& data, DataContext const& context) {
  DataKind const& kind = Registry<DataKind>::at(data.kind, "data.kind: there is no");
  if (context.held_out != "validation" && context.held_out != "test")
    throw Error("data: there is no part '" + context.held_out + "' to hold out; there are validation and test");
  if (context.held_out == "test" && kind.parts == DataParts::validation)
    throw Error("data.kind: data of kind " + data.kind + " have no test part, validation alone is held out");
  std::vector<std::string> elsewhere;
  DataContext noting = context;
  noting.elsewhere = &elsewhere;
  auto dataset = kind.open(*data.settings, noting);
  if (!elsewhere.empty() && !context.quiet)
    fmt::print(stderr, "data are taken from where the run has read them, unchanged: {}\n", fmt::join(elsewhere, ", "));
  return dataset;
}

}  // namespace heed
