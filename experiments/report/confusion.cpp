// Predictions for labelled examples: a confusion matrix, and the examples with errors.

#include "experiments/report/confusion.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <numeric>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/error.hpp"
#include "experiments/report/html.hpp"
#include "experiments/report/parts.hpp"
#include "nn/files/input_file.hpp"
#include "nn/files/json.hpp"

namespace heed {

namespace {

constexpr std::size_t most_classes = 12;  ///< of a matrix with numbers in its cells

std::string share(Index part, Index all) { return all == 0 ? "–" : fmt::format("{:.3f}", to_double(part) / to_double(all)); }

}  // namespace

std::vector<std::vector<std::string>> Confusion::rows() const {
  std::vector<std::vector<std::string>> rows{{"label", "examples"}};
  std::vector<std::string> precision{"precision", ""};
  rows[0].insert(rows[0].end(), classes.begin(), classes.end());
  rows[0].push_back("recall");
  for (std::size_t i = 0; i < classes.size(); ++i) {
    Index of_label = 0, of_prediction = 0;
    auto& row = rows.emplace_back(std::vector<std::string>{classes[i], ""});
    for (std::size_t j = 0; j < classes.size(); ++j) {
      of_label += counts[i][j], of_prediction += counts[j][i];
      row.push_back(fmt::format("{}", counts[i][j]));
    }
    row[1] = fmt::format("{}", of_label);
    row.push_back(share(counts[i][i], of_label));
    precision.push_back(share(counts[i][i], of_prediction));
  }
  precision.emplace_back();
  rows.push_back(precision);
  return rows;
}

std::optional<Figure> Confusion::figure() const {
  if (classes.size() > most_classes) return std::nullopt;
  double const side = std::clamp(0.42 * static_cast<double>(classes.size()), 1.4, 4.2);
  Panel panel{.x = axis_of_names(classes, "prediction"), .y = axis_of_rows(classes, "label"), .cells = Cells{.columns = classes.size()}};
  for (std::size_t label = 0; label < classes.size(); ++label) {
    auto const& row = counts[label];
    auto const of_label = std::max<Index>(1, std::accumulate(row.begin(), row.end(), Index{0}));
    for (std::size_t predicted = 0; predicted < row.size(); ++predicted) {
      double const of_row = to_double(row[predicted]) / to_double(of_label);
      panel.cells->values.push_back(of_row);
      panel.notes.push_back({.text = fmt::format("{}", row[predicted]),
                             .x = static_cast<double>(predicted),
                             .y = static_cast<double>(label),
                             .colour = of_row > 0.55 ? "#ffffff" : "#1a1c20",
                             .centred = true});
    }
  }
  return Figure{.name = "confusion",
                .title = "Confusion matrix",
                .caption = "Rows are labels, columns predictions: number of held-out examples, coloured by its share of the row.",
                .panels = {std::move(panel)},
                .scales = {{.colours = {"#ffffff", "#0072b2"}, .shown = false}},
                .frame_width = side,
                .frame_height = side};
}

// ---------------------------------------------------------------- on a page

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t most_wrong = 12;  ///< examples on a page

/// Null if it is not there.
Json const& member(Json const& line, char const* key) {
  static Json const null;
  auto const found = line.find(key);
  return found == line.end() ? null : *found;
}

/// The lines of predictions.jsonl; of a folder without one none. Throws FileError for a line that is none of its own.
std::vector<Json> lines_of(std::filesystem::path const& folder) {
  std::istringstream text(read_if_there(folder / "predictions.jsonl").value_or(""));
  std::vector<Json> lines;
  for (std::string each; std::getline(text, each);) {
    auto const& line = lines.emplace_back(parse_json<Json>(each, "predictions.jsonl"));
    if (!line.is_object() || !member(line, "first").is_string() || !member(line, "predicted").is_string())
      throw FileError(fmt::format("predictions.jsonl: line {} is not an example", lines.size()));
  }
  return lines;
}

std::string text_at(Json const& line, char const* key) { return member(line, key).is_string() ? member(line, key).get<std::string>() : ""; }
double number_at(Json const& line, char const* key) { return member(line, key).is_number() ? member(line, key).get<double>() : 0; }

Confusion confusion_of(std::vector<Json> const& lines) {
  std::set<std::string> known;
  for (Json const& line : lines) known.insert({text_at(line, "label"), text_at(line, "predicted")});
  Confusion confusion({known.begin(), known.end()});
  auto const number = [&](Json const& line, char const* key) {
    return static_cast<std::size_t>(std::distance(known.begin(), known.find(text_at(line, key))));
  };
  for (Json const& line : lines) ++confusion.counts[number(line, "label")][number(line, "predicted")];
  return confusion;
}

/// The tokens that the summary token has attended to, shaded by weight.
std::string attention_html(Json const& line) {
  auto const& looked = member(line, "looked");
  if (!looked.is_array()) return "";
  double most = 0;
  for (auto const& each : looked)
    if (each.is_array() && each.size() == 2 && each[1].is_number()) most = std::max(most, each[1].get<double>());
  std::string html = "<p class=\"looked\">";
  for (auto const& each : looked) {
    if (!each.is_array() || each.size() != 2 || !each[0].is_string() || !each[1].is_number()) continue;
    double const weight = each[1].get<double>();
    html += fmt::format("<span style=\"--weight:{:.3f}\" title=\"{:.3f}\">{}</span>", most > 0 ? weight / most : 0, weight,
                        escape(each[0].get<std::string>()));
  }
  return html + "</p>\n";
}

std::string example(Json const& line) {
  std::string html = fmt::format("<div class=\"example\">\n<p class=\"note\">{}</p>\n<p>{}</p>\n", escape(text_at(line, "place")),
                                 escape(text_at(line, "first")));
  if (line.contains("second")) html += fmt::format("<p>{}</p>\n", escape(text_at(line, "second")));
  if (member(line, "options").is_array()) {
    std::string options;
    for (auto const& option : line["options"])
      options += fmt::format("<li>{}</li>\n", option.is_string() ? escape(option.get<std::string>()) : "");
    html += "<ol start=\"0\">\n" + options + "</ol>\n";
  }
  if (line.contains("label")) {
    html += fmt::format("<p>label <strong>{}</strong>, predicted <strong>{}</strong> with probability {:.2f}</p>\n",
                        escape(text_at(line, "label")), escape(text_at(line, "predicted")), number_at(line, "probability"));
  } else {
    std::string answers;
    for (auto const& answer : member(line, "answers"))
      if (answer.is_string()) answers += (answers.empty() ? "" : ", ") + answer.get<std::string>();
    html += fmt::format("<p>answer <strong>{}</strong>, predicted <strong>{}</strong></p>\n", answers.empty() ? "none" : escape(answers),
                        text_at(line, "predicted").empty() ? "none" : escape(text_at(line, "predicted")));
  }
  return html + attention_html(line) + "</div>\n";
}

std::vector<StudyPart> prediction_parts_of(Material const& material) {
  if (!material.single) return {};
  auto const lines = lines_of(material.folder);
  if (lines.empty()) return {};
  std::vector<Json const*> wrong;
  for (Json const& line : lines)
    if (line.value("right", Json()) != true) wrong.push_back(&line);
  auto const confidence = [](Json const* line) {
    return number_at(*line, line->contains("probability") ? "probability" : "above_no_answer");
  };
  std::ranges::stable_sort(wrong, std::greater(), confidence);

  StudyPart part{.title = "Predictions", .html = "", .figures = {}};
  if (lines.front().contains("label") && !lines.front().contains("options"))
    if (auto figure = confusion_of(lines).figure()) part.figures.push_back(std::move(*figure));
  part.html += fmt::format(
      "<h3>Errors</h3>\n<p class=\"note\">{} of {} held-out examples are wrong{}; all are in <code>predictions.jsonl</code>. Shading: "
      "attention of the summary token in the last layer, mean over heads, relative to the largest weight.</p>\n",
      wrong.size(), lines.size(), wrong.size() > most_wrong ? fmt::format(", here the {} of highest confidence", most_wrong) : "");
  for (std::size_t i = 0; i < std::min(wrong.size(), most_wrong); ++i) part.html += example(*wrong[i]);
  return {part};
}

Declared<AddedParts> const prediction_parts{{4, prediction_parts_of}};

}  // namespace

}  // namespace heed
