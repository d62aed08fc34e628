#pragma once

#include <string>
#include <vector>

namespace heed {

/// What `heed list` can list.
std::vector<std::string> list_topics();

/// Of what a topic has a page of its own: its kinds, data sets, sections, … Empty if there is one page alone.
std::vector<std::string> list_entries(std::string const& topic);

/// What there is of a topic, as tables made from the declarations; of the empty topic, the topics. `name`: all of one of them. Throws
/// ConfigError for an unknown one, with the nearest. `markdown`: the tables of attention and positions, or of an ablation's keys, as the
/// README files have them.
std::string list(std::string const& topic, std::string const& name = "", bool markdown = false);

}  // namespace heed
