#pragma once

#include <string>
#include <vector>

namespace heed {

/// A key of an ablation's file: what it means, and a line that uses it.
struct AblationKey {
  std::string name, help, example;
};

/// All of them, in the order in which one writes them. `heed list ablation`, the schema and the README tell them from here.
std::vector<AblationKey> const& ablation_keys();

/// What the key of this name means.
std::string const& ablation_help(std::string const& name);

}  // namespace heed
