#pragma once

#include <functional>
#include <string>
#include <vector>

#include "autograd/registry.hpp"
#include "nn/settings.hpp"

namespace heed {

/// An entry of a topic: `heed list TOPIC NAME`.
struct ListEntry {
  std::string name;
  std::function<std::string()> page;
};

/// A topic of `heed list`, declared in the folder that provides it.
struct ListTopic {
  int order;  ///< among the others
  std::string name, help;
  std::function<std::string()> page;
  std::function<std::vector<ListEntry>()> entries = {};  ///< empty: entries have no page of their own
};
extern template void Registry<ListTopic>::add(ListTopic);  // compiled once

/// A line for each kind of a choice; and one page per kind with its keys.
std::string choice_page(Choice const& choice, std::string const& topic);
std::vector<ListEntry> choice_entries(Choice const& choice);
/// A topic that lists the kinds of a choice.
ListTopic choice_topic(int order, std::string const& name, std::string const& help, Choice (*choice)());

}  // namespace heed
