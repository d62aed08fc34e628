#pragma once

#include <functional>
#include <string>
#include <vector>

#include "experiments/run/list_topic.hpp"

namespace heed {

/// What `heed list` can list.
std::vector<std::string> list_topics();

/// Of what a topic has a page of its own: its kinds, data sets, sections, … Empty if there is one page alone.
std::vector<std::string> list_entries(std::string const& topic);

/// What there is of a topic, as tables made from the declarations; of the empty topic, the topics. `name`: all of one of them. Throws
/// ConfigError for an unknown one, with the nearest. `markdown`: the tables of attention and positions, or of an ablation's keys, as the
/// README files have them.
std::string list(std::string const& topic, std::string const& name = "", bool markdown = false);

/// Variants of one sort, a row each: printed for a terminal, and in README files.
struct VariantTable {
  std::string title;
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;

  std::string printed() const;
  /// A page for each row: every column of it on a line of its own.
  std::vector<ListEntry> entries() const;
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
std::vector<ListEntry> attention_entries();
std::vector<ListEntry> position_entries();
/// All declared tables as README files have them.
std::string variants_in_markdown();

}  // namespace heed
