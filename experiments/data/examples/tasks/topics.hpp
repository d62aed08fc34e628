#pragma once

#include <span>
#include <string>
#include <vector>

namespace heed {

/// Words of the language of configs/data/english.yaml that belong together: who, and what they do.
struct Topic {
  std::string name;
  std::vector<std::string> nouns, verbs;
};

/// people, animals, machines, plants.
std::span<Topic const> topics();

}  // namespace heed
