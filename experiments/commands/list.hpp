#pragma once

#include <functional>
#include <string>
#include <vector>

#include "experiments/program/list_topic.hpp"

namespace heed {

/// The topics of `heed list`.
std::vector<std::string> list_topics();

/// A topic's page, as tables made from the declarations; for the empty topic, the list of topics. `name`: details of one entry. Throws
/// ConfigError for an unknown one, with the nearest. `markdown`: the tables of attention and positions, or of an ablation's keys, as in the
/// README files.
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

/// The pages of attention and positions, as tables made from the declarations; and a page for each row.
std::string list_attention();
std::string list_positions();
std::vector<ListEntry> attention_entries();
std::vector<ListEntry> position_entries();
/// All declared tables in Markdown.
std::string variants_in_markdown();

}  // namespace heed
