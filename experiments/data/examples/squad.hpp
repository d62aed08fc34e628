#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/data/examples/selection.hpp"

namespace heed {

/// The first byte of each character of a text that is UTF-8, and behind them its size.
std::vector<std::size_t> character_starts(std::string_view text);

/// SQuAD's JSON, version 1.1 or 2 (Rajpurkar et al. 2016, 2018): the question is `first`, the paragraph `second`. A question with
/// `is_impossible` has no answers; its plausible ones are none. Throws FileError naming file and question for what is not of this form and
/// for an answer that is not at its place in the paragraph.
std::vector<SourcedExample> read_squad(std::string_view content, std::string const& path);

}  // namespace heed
