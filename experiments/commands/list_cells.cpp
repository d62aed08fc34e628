// heed list cells

#include "experiments/commands/list.hpp"
#include "nn/models/recurrent/recurrent.hpp"

namespace heed {

namespace {

VariantTable cell_table() {
  VariantTable table{.title = "recurrent cells: the next output h from the input x and the states",
                     .head = {"cell", "next output", "gates", "states", "paper"},
                     .rows = {}};
  for (auto const& kind : Registry<CellKind>::all())
    table.rows.push_back({kind.name, kind.formula, std::to_string(kind.gates), std::to_string(kind.states), kind.paper});
  return table;
}

Declared<ReadmeTables> const cell_tables{{3, [] { return std::vector{cell_table()}; }}};
Declared<ListTopic> const cells_topic{
    {3, "cells", "recurrent cells, for `cell: NAME`", [] { return cell_table().printed(); }, [] { return cell_table().entries(); }}};

}  // namespace

}  // namespace heed
