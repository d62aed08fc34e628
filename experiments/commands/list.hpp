#pragma once

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

/// The pages of attention, positions and recurrent cells, as tables made from the declarations.
std::string list_attention();
std::string list_positions();
std::string list_cells();
/// A page for each row of these tables.
std::vector<Entry> attention_entries();
std::vector<Entry> position_entries();
std::vector<Entry> cell_entries();
/// All of these tables as README files have them.
std::string variants_in_markdown();

}  // namespace heed
