#include <algorithm>

#include <fmt/format.h>

#include "experiments/config/config.hpp"
#include "experiments/config/scalar.hpp"
#include "experiments/config/table.hpp"

namespace heed {
namespace {

struct SettingRow {
  std::string key, type, preset, help;
};

void add_rows(Settings& settings, std::string const& section, std::vector<SettingRow>& rows) {
  for (auto const& field : settings.fields()) {
    std::string const path = dotted(section, field.name);
    if (auto* const sub = std::get_if<Settings*>(&field.target)) {
      auto const words = (*sub)->short_words();
      std::string list;
      for (auto const& word : words) list += (list.empty() ? " or one of " : ", ") + word;
      rows.push_back({path, wanted(field) + list, "", field.help});
      add_rows(**sub, path, rows);
    } else if (auto* const list = std::get_if<SettingsList*>(&field.target)) {
      rows.push_back({path, wanted(field), "[]", field.help});
      add_rows(*(*list)->one(), path, rows);
    } else if (auto* const choice = std::get_if<Choice*>(&field.target)) {
      rows.push_back({path, wanted(field), (*choice)->kind, field.help});
      for (auto const& option : (*choice)->options) {
        rows.push_back({dotted(path, "kind: ") + option.name, "", "", option.help});
        add_rows(*option.make(), path, rows);
      }
    } else {
      rows.push_back({path, wanted(field), field.required ? "required" : emit_line(value_of(field)), field.help});
    }
  }
}

}  // namespace

std::string describe(Settings& settings) {
  std::vector<SettingRow> rows;
  add_rows(settings, "", rows);
  std::size_t keys = 0, types = 0, presets = 0;
  for (auto const& row : rows) {
    keys = std::max(keys, columns(row.key));
    types = std::max(types, std::min<std::size_t>(columns(row.type), 40));
    presets = std::max(presets, std::min<std::size_t>(columns(row.preset), 24));
  }
  std::string page;
  for (auto const& row : rows) {
    auto line = fmt::format("{:<{}}  {:<{}}  {:<{}}  {}", row.key, keys, row.type, types, row.preset, presets, row.help);
    line.erase(line.find_last_not_of(' ') + 1);
    page += line + '\n';
  }
  return page;
}

}  // namespace heed
