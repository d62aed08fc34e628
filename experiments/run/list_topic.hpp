#pragma once

#include <functional>
#include <string>
#include <vector>

#include "autograd/registry.hpp"
#include "nn/settings.hpp"

namespace heed {

/// One of what a topic has: `heed list TOPIC NAME`.
struct ListEntry {
  std::string name;
  std::function<std::string()> page;
};

/// What `heed list` can list, declared in the room that has it.
struct ListTopic {
  int place;  ///< among the others
  std::string name, help;
  std::function<std::string()> page;
  std::function<std::vector<ListEntry>()> entries = {};  ///< empty: it has no more to say of one than the page does

  int order() const { return place; }
};

/// A line for each kind of a choice; and its kinds, each with its keys.
std::string choice_page(Choice const& choice, std::string const& topic);
std::vector<ListEntry> choice_entries(Choice const& choice);
/// A topic that lists the kinds of a choice.
ListTopic choice_topic(int place, std::string const& name, std::string const& help, Choice (*choice)());

}  // namespace heed
