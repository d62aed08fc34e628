#pragma once

#include <functional>
#include <string>
#include <vector>

#include "experiments/program/command.hpp"

namespace heed {

/// A topic's page, as tables made from the declarations; for the empty topic, the list of topics. `name`: details of one entry. `markdown`:
/// the tables of README files: attention with positions, or an ablation's keys. Throws ConfigError for what is unknown, with the nearest.
std::string list(std::string const& topic, std::string const& name = "", bool markdown = false);

/// Variants of one sort, one per row: for the terminal and the README files.
struct VariantTable {
  std::string title;
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;

  std::string printed() const;
  /// A page for each row, with every column on its own line.
  std::vector<ListEntry> entries() const;
};

/// Tables of README files, declared beside the topic that lists them.
struct ReadmeTables {
  int order;  ///< among the others
  std::function<std::vector<VariantTable>()> tables;
};

/// All declared tables in Markdown.
std::string variants_in_markdown();

}  // namespace heed
