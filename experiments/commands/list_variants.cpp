#include <algorithm>
#include <iterator>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/commands/list.hpp"
#include "experiments/config/config.hpp"
#include "experiments/config/table.hpp"
#include "nn/attention/steps.hpp"
#include "nn/position.hpp"

namespace heed {

namespace {

/// The parameters that a step makes, with their shapes in symbols: found by making it with sizes that say which is which.
template <class Step>
std::string parameters_of(StepKind<Step> const& kind, AttentionSettings const& settings) {
  HeadShape const shape{.heads = 2, .width = 3, .context = 5};
  std::map<Index, std::string> const symbols{{2, "H"}, {3, "d"}, {5, "context"}};
  auto parameters = Parameters::counted(DType::float32);
  kind.make(Scope(parameters), settings, shape);
  std::vector<std::string> result;
  for (auto const& [name, parameter] : parameters.all()) {
    auto const sizes = mapped(parameter.shape(), [&](Index size) { return symbols.at(size); });
    result.push_back(fmt::format("{} [{}]", name, fmt::join(sizes, ", ")));
  }
  return fmt::format("{}", fmt::join(result, ", "));
}

template <class Step>
TableRows step_rows() {
  TableRows rows;
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

template <class Part>
TableRows part_rows() {
  return mapped(Registry<Part>::all(), [](Part const& kind) { return std::vector{kind.name, kind.formula, kind.paper}; });
}

TableRows linear_rows() {
  TableRows rows;
  for (auto const& [name, paper, s, convolution, scale] : linear_variants()) {
    auto const changed = [](std::string const& key, std::string const& value) {
      return value == "none" ? "" : fmt::format(", {}: {}", key, value);
    };
    std::string keys =
        fmt::format("{{feature: {}, decay: {}, write: {}{}{}{}{}", s.feature, s.decay, s.write, changed("normaliser", s.normaliser),
                    changed("activation", s.activation), changed("output_norm", s.output_norm), changed("output_gate", s.output_gate));
    if (convolution) keys += fmt::format(", convolution: {}", *convolution);
    if (scale != "rsqrt") keys += ", scale: " + scale;
    if (s.groups) keys += fmt::format(", groups: {}", *s.groups);
    if (s.rank) keys += fmt::format(", rank: {}", *s.rank);
    if (s.skip) keys += ", skip: true";
    rows.push_back({name, keys + "}", paper});
  }
  return rows;
}

std::vector<VariantTable> attention_tables() {
  auto const head = [](std::string const& step) {
    return std::vector<std::string>{step, "formula", "parameters", "cost per head", "differentiable", "paper"};
  };
  TableRows names;
  for (auto const& name : attention_names())
    names.push_back({name.name, fmt::format("{{score: {}, align: {}, read: {}}}", name.score, name.align, name.read)});
  return {
      {"score: e_ij of query q_i and key k_j; n queries, m keys", head("score"), step_rows<Score>()},
      {"align: weights a_ij from scores", head("align"), step_rows<Align>()},
      {"read: the context c_i from weights and values v_j", head("read"), step_rows<Read>()},
      {"short names, for `attention: NAME`", {"name", "stands for"}, names},
      {"linear attention: φ of queries and keys", {"feature", "formula", "paper"}, part_rows<FeatureKind>()},
      {"linear attention: log decay g_t of the state", {"decay", "formula", "paper"}, part_rows<DecayKind>()},
      {"linear attention: w_t, written into the state beside k̂_t", {"write", "formula", "paper"}, part_rows<WriteKind>()},
      {"variants of linear attention, for `attention: NAME` or `{linear: NAME, …}`", {"variant", "stands for", "paper"}, linear_rows()}};
}

VariantTable position_table() {
  auto const row = [](PositionKind const& kind) { return std::vector{kind.name, kind.formula, kind.beyond, kind.paper}; };
  return {
      "positional encodings", {"position", "formula", "beyond the trained context", "paper"}, mapped(Registry<PositionKind>::all(), row)};
}

Declared<ReadmeTables> const attention_tables_in_readme{{1, attention_tables}};
Declared<ReadmeTables> const position_tables{{2, [] { return std::vector{position_table()}; }}};

std::string list_attention() {
  std::string page;
  for (auto const& each : attention_tables()) page += each.printed();
  AttentionSettings settings;
  return page + "keys of `attention: {…}`\n" + describe(settings, 2);
}

std::vector<ListEntry> attention_entries() {
  std::vector<ListEntry> entries;
  for (auto const& each : attention_tables()) {
    if (each.head.front() != "name") {
      auto of_rows = each.entries();
      std::ranges::move(of_rows, std::back_inserter(entries));
      continue;
    }
    for (auto const& row : each.rows) {  // of which `additive` is a score too: one page says both
      auto const same = std::ranges::find(entries, row.front(), &ListEntry::name);
      auto const line = fmt::format("`attention: {}` stands for {}\n", row[0], row[1]);
      if (same == entries.end())
        entries.push_back({row.front(), [line] { return line; }});
      else
        same->page = [line, before = same->page] { return before() + "\n" + line; };
    }
  }
  return entries;
}

Declared<ListTopic> const attention_topic{
    {1, "attention", "attention: scores, aligns and reads, and names of whole variants", list_attention, attention_entries}};
Declared<ListTopic> const positions_topic{
    {2, "positions", "positional encodings", [] { return position_table().printed(); }, [] { return position_table().entries(); }}};

}  // namespace

std::string VariantTable::printed() const {
  TableRows all{head};
  all.insert(all.end(), rows.begin(), rows.end());
  return title + "\n" + table(all) + "\n";
}

std::vector<ListEntry> VariantTable::entries() const {
  std::vector<ListEntry> entries;
  for (auto const& row : rows) {
    entries.push_back({row.front(), [title = title, head = head, row] {
                         TableRows lines;
                         for (std::size_t i = 1; i < row.size(); ++i)
                           if (!row[i].empty()) lines.push_back({head[i], row[i]});
                         return row.front() + ": " + title + "\n" + table(lines);
                       }});
  }
  return entries;
}

std::string variants_in_markdown() {
  std::string page;
  for (auto const& declared : Registry<ReadmeTables>::all()) {
    for (auto& [title, head, rows] : declared.tables()) {
      if (!page.empty()) page += '\n';
      for (auto& row : rows) row.front() = '`' + row.front() + '`';
      rows.insert(rows.begin(), head);
      page += markdown_table(rows);
    }
  }
  return page;
}

}  // namespace heed
