#pragma once

#include <string>
#include <vector>

namespace heed {

/// What `heed list` can list.
std::vector<std::string> list_topics();

/// What there is of a topic, as tables made from the declarations; of the empty topic, the topics. Throws ConfigError for an unknown one.
std::string list(std::string const& topic);

}  // namespace heed
