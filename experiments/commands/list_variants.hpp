#pragma once

#include <functional>
#include <string>
#include <vector>

#include "experiments/run/list_topic.hpp"

namespace heed {

/// Variants of one sort, a row each: printed for a terminal, and in README files.
struct VariantTable {
  std::string title;
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;

  std::string printed() const;
  /// A page for each row: every column of it on a line of its own.
  std::vector<Entry> entries() const;
};

/// Tables that README files have, declared beside the topic that lists them.
struct ReadmeTables {
  int place;  ///< among the others
  std::function<std::vector<VariantTable>()> tables;

  int order() const { return place; }
};

/// The pages of attention and positions, as tables made from the declarations; and a page for each of their rows.
std::string list_attention();
std::string list_positions();
std::vector<Entry> attention_entries();
std::vector<Entry> position_entries();
/// All declared tables as README files have them.
std::string variants_in_markdown();

}  // namespace heed
