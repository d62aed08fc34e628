#include "experiments/program/list_topic.hpp"

#include <fmt/format.h>

#include "experiments/config/config.hpp"
#include "experiments/config/table.hpp"

namespace heed {

template void Registry<ListTopic>::add(ListTopic);

std::string choice_page(Choice const& choice, std::string const& topic) {
  auto const rows = mapped(choice.options, [](auto const& option) { return std::vector{option.name, option.help}; });
  return table(rows) + fmt::format("\nheed list {} NAME: its keys, with types, ranges, defaults and meanings\n", topic);
}

std::vector<ListEntry> choice_entries(Choice const& choice) {
  std::vector<ListEntry> entries;
  for (auto const& option : choice.options) {
    entries.push_back({option.name, [option] {
                         auto const settings = option.make();
                         return option.name + ": " + option.help + "\n" + describe(*settings, 2);
                       }});
  }
  return entries;
}

ListTopic choice_topic(int order, std::string const& name, std::string const& help, Choice (*choice)()) {
  return {order, name, help, [=] { return choice_page(choice(), name); }, [=] { return choice_entries(choice()); }};
}

}  // namespace heed
