#pragma once

#include <string>
#include <vector>

namespace heed {

/// What `heed list` can list.
std::vector<std::string> list_topics();

/// What there is of a topic, as tables made from the declarations; of the empty topic, the topics. Throws ConfigError for an unknown one.
/// `markdown`: the tables of attention and positions alone, as README has them.
std::string list(std::string const& topic, bool markdown = false);

}  // namespace heed
