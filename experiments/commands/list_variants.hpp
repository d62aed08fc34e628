#pragma once

#include <string>
#include <vector>

#include "experiments/run/list_topic.hpp"

namespace heed {

/// The pages of attention, positions and recurrent cells, as tables made from the declarations.
std::string list_attention();
std::string list_positions();
std::string list_cells();
/// A page for each row of these tables.
std::vector<ListEntry> attention_entries();
std::vector<ListEntry> position_entries();
std::vector<ListEntry> cell_entries();
/// All of these tables as README files have them.
std::string variants_in_markdown();

}  // namespace heed
