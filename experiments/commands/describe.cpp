#include "experiments/config/config.hpp"
#include "experiments/config/scalar.hpp"
#include "experiments/config/table.hpp"

namespace heed {
namespace {

/// Rows of key, type, default and meaning.
using SettingRows = std::vector<std::vector<std::string>>;

void add_rows(Settings& settings, std::string const& section, SettingRows& rows) {
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

std::string describe(Settings& settings, std::size_t indent, std::string const& section) {
  SettingRows rows;
  add_rows(settings, "", rows);
  std::erase_if(rows, [&](auto const& row) { return !section.empty() && row[0] != section && !row[0].starts_with(section + "."); });
  return table(rows, indent, {whole_lines, 40, 24});
}

}  // namespace heed
