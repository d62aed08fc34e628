#include "experiments/report/confusion.hpp"

#include <algorithm>

#include <fmt/format.h>

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
      of_label += at(i, j), of_prediction += at(j, i);
      row.push_back(fmt::format("{}", at(i, j)));
    }
    row[1] = fmt::format("{}", of_label);
    row.push_back(share(at(i, i), of_label));
    precision.push_back(share(at(i, i), of_prediction));
  }
  precision.emplace_back();
  rows.push_back(precision);
  return rows;
}

std::optional<Figure> Confusion::figure() const {
  if (classes.size() > most_classes) return std::nullopt;
  double const side = std::clamp(0.42 * static_cast<double>(classes.size()), 1.4, 4.2);
  Panel panel{.x = axis_of_names(classes, "prediction"), .y = axis_of_rows(classes, "label"), .cells = Cells{.columns = classes.size()}};
  for (std::size_t i = 0; i < counts.size(); ++i) {
    std::size_t const label = i / classes.size(), predicted = i % classes.size();
    Index of_label = 0;
    for (std::size_t j = 0; j < classes.size(); ++j) of_label += at(label, j);
    double const of_row = to_double(counts[i]) / to_double(std::max<Index>(1, of_label));
    panel.cells->values.push_back(of_row);
    panel.notes.push_back({.text = fmt::format("{}", counts[i]),
                           .x = static_cast<double>(predicted),
                           .y = static_cast<double>(label),
                           .colour = of_row > 0.55 ? "#ffffff" : "#1a1c20",
                           .centred = true});
  }
  return Figure{.name = "confusion",
                .title = "Confusion matrix",
                .caption = "Rows are labels, columns predictions: number of held-out examples, coloured by its share of the row.",
                .panels = {std::move(panel)},
                .scales = {{.colours = {"#ffffff", "#0072b2"}, .shown = false}},
                .frame_width = side,
                .frame_height = side};
}

void ConfusionMetric::add(EvaluatedBatch const& batch) {
  auto const labels = batch.targets().data<std::int64_t>();
  for (std::size_t i = 0; i < labels.size(); ++i)
    ++confusion_.at(static_cast<std::size_t>(labels[i]), static_cast<std::size_t>(batch.best()[i]));
}

}  // namespace heed
