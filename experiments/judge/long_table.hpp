#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/data/examples/table.hpp"
#include "experiments/judge/runs_table.hpp"

namespace heed {

using Column = std::optional<std::size_t>;

/// A table with a row for each number of one metric, and the columns that count. Without a column of seeds arms are names of runs.
struct LongTable {
  Table table;
  std::size_t arm, value;
  Column seed, step;
};

/// Makes long tables of all kinds; names metric and task of the result, and adds remarks. Throws as read_runs_table does.
std::vector<LongTable> long_tables(std::vector<Table> tables, RunsTableOptions const& options, RunsTable& result);

}  // namespace heed
