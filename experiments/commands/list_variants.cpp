#include <algorithm>
#include <cstdint>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/commands/list.hpp"
#include "experiments/config/config.hpp"
#include "experiments/config/table.hpp"
#include "nn/attention/steps.hpp"
#include "nn/models/recurrent/recurrent.hpp"
#include "nn/position.hpp"

namespace heed {

namespace {

using Rows = std::vector<std::vector<std::string>>;

/// The parameters that a step makes, with their shapes in symbols: found by making it with sizes that say which is which.
template <class Step>
std::string parameters_of(StepKind<Step> const& kind, AttentionSettings const& settings) {
  HeadShape const shape{.heads = 2, .width = 3, .context = 5};
  std::map<std::int64_t, std::string> const symbols{{2, "H"}, {3, "d"}, {5, "context"}};
  auto parameters = Parameters::counted(DType::float32);
  kind.make(Scope(parameters), settings, shape);
  std::vector<std::string> result;
  for (auto const& [name, parameter] : parameters.all()) {
    std::vector<std::string> sizes;
    for (auto const size : parameter.shape()) sizes.push_back(symbols.at(size));
    result.push_back(fmt::format("{} [{}]", name, fmt::join(sizes, ", ")));
  }
  return fmt::format("{}", fmt::join(result, ", "));
}

template <class Step>
Rows step_rows() {
  Rows rows;
  for (auto const& kind : Registry<StepKind<Step>>::all()) {
    AttentionSettings const usual;
    AttentionSettings learned;
    learned.scale = "learned";
    auto parameters = parameters_of(kind, usual);
    if (auto const more = parameters_of(kind, learned); more != parameters) parameters = more + " if `scale: learned`";
    rows.push_back({kind.name, kind.formula, parameters, kind.cost, kind.smooth, kind.paper});
  }
  return rows;
}

/// A part of the page on attention: its tables are printed for a terminal, and in README.
struct Part {
  std::string title;
  std::vector<std::string> head;
  Rows rows;
};

std::vector<Part> attention_parts() {
  auto const head = [](std::string const& step) {
    return std::vector<std::string>{step, "formula", "parameters", "cost a head", "differentiable", "paper"};
  };
  Rows names;
  for (auto const& name : attention_names())
    names.push_back({name.name, fmt::format("{{score: {}, align: {}, read: {}}}", name.score, name.align, name.read)});
  return {{"score: e_ij of query q_i and key k_j; n queries, m keys", head("score"), step_rows<Score>()},
          {"align: weights a_ij from scores", head("align"), step_rows<Align>()},
          {"read: the context c_i from weights and values v_j", head("read"), step_rows<Read>()},
          {"short names, for `attention: NAME`", {"name", "stands for"}, names}};
}

Part position_part() {
  Rows rows;
  for (auto const& kind : Registry<PositionKind>::all()) rows.push_back({kind.name, kind.formula, kind.beyond, kind.paper});
  return {"how a model knows where a token stands", {"position", "formula", "beyond the trained context", "paper"}, rows};
}

Part cell_part() {
  Rows rows;
  for (auto const& kind : Registry<CellKind>::all())
    rows.push_back({kind.name, kind.formula, std::to_string(kind.gates), std::to_string(kind.states), kind.paper});
  return {"the next output h of a recurrent cell, from what it reads and its states",
          {"cell", "next output", "gates", "states", "paper"},
          rows};
}

std::string printed(Part const& part) {
  Rows rows{part.head};
  rows.insert(rows.end(), part.rows.begin(), part.rows.end());
  return part.title + "\n" + table(rows) + "\n";
}

/// The rows of a part as entries: every column of the row on a line of its own.
void add_entries(Part const& part, std::vector<Entry>& entries) {
  for (auto const& row : part.rows) {
    entries.push_back({row.front(), [part, row] {
                         Rows lines;
                         for (std::size_t i = 1; i < row.size(); ++i)
                           if (!row[i].empty()) lines.push_back({part.head[i], row[i]});
                         return row.front() + ": " + part.title + "\n" + table(lines);
                       }});
  }
}

}  // namespace

std::string list_attention() {
  std::string page;
  for (auto const& part : attention_parts()) page += printed(part);
  AttentionSettings settings;
  return page + "keys of `attention: {…}`\n" + indented(describe(settings));
}

std::string list_positions() { return printed(position_part()); }

std::string list_cells() { return printed(cell_part()); }

std::string variants_in_markdown() {
  auto parts = attention_parts();
  parts.push_back(position_part());
  parts.push_back(cell_part());
  std::string page;
  for (auto const& part : parts) {
    if (!page.empty()) page += '\n';
    page += markdown_row(part.head) + markdown_row(std::vector<std::string>(part.head.size(), "---"));
    for (auto row : part.rows) {
      row.front() = '`' + row.front() + '`';
      page += markdown_row(row);
    }
  }
  return page;
}

std::vector<Entry> attention_entries() {
  std::vector<Entry> entries;
  for (auto const& part : attention_parts()) {
    if (part.head.front() != "name") {
      add_entries(part, entries);
      continue;
    }
    for (auto const& row : part.rows) {  // of which `additive` is a score too: one page says both
      auto const same = std::ranges::find(entries, row.front(), &Entry::name);
      auto const line = fmt::format("`attention: {}` stands for {}\n", row[0], row[1]);
      if (same == entries.end())
        entries.push_back({row.front(), [line] { return line; }});
      else
        same->page = [line, before = same->page] { return before() + "\n" + line; };
    }
  }
  return entries;
}

std::vector<Entry> position_entries() {
  std::vector<Entry> entries;
  add_entries(position_part(), entries);
  return entries;
}

std::vector<Entry> cell_entries() {
  std::vector<Entry> entries;
  add_entries(cell_part(), entries);
  return entries;
}

}  // namespace heed
