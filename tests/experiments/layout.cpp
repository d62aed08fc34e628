#include "experiments/report/layout.hpp"

#include "experiments/config/table.hpp"
#include "experiments/report/gnuplot.hpp"
#include "tests/test.hpp"

using namespace heed;

TEST_SUITE("layout") {
  namespace {

  /// Names of forty characters that differ at their ends.
  std::vector<std::string> long_names(std::size_t count) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < count; ++i) names.push_back(fmt::format("cosine-entmax15 of a long description {:2}", i));
    return names;
  }

  /// Whether every text lies within its figure, by the mean width of a character; upright ones too.
  bool holds_texts(FigureLayout const& layout) {
    return std::ranges::all_of(layout.texts, [&](PlacedText const& text) {
      double const length = 0.066 * static_cast<double>(columns(text.text));
      double const before = text.side == PlacedText::Anchor::left ? 0 : text.side == PlacedText::Anchor::right ? length : length / 2;
      double const along = text.upward ? text.y : text.x, across = text.upward ? text.x : text.y;
      double const end = text.upward ? layout.height : layout.width, side = text.upward ? layout.width : layout.height;
      bool const held = along - before >= 0 && along - before + length <= end && across >= 0.05 && across <= side - 0.05;
      if (!held) MESSAGE(text.text);
      return held;
    });
  }

  Panel panel_named(std::string const& title) {
    return {.title = title,
            .x = {.name = "step", .low = 0, .high = 1000, .step = 200},
            .y = {.name = "validation loss length512 (nat)", .low = 0.001, .high = 0.002, .step = 0.0002},
            .layers = {{As::line, {{0, 0.001, 0, 0}, {1000, 0.002, 0, 0}}, look_of(1)}}};
  }

  /// Figures of every form, of names of forty characters.
  std::vector<Figure> figures_of_long_names() {
    auto const names = long_names(6);
    Figure panels{.across = 3, .shared_x = true, .shared_y = true}, apart{.across = 2}, words = panels;
    Figure ends{.panels = {panel_named("")}, .frame_height = 2}, rows{.panels = {panel_named("")}, .frame_height = 1.4};
    rows.panels.front().columns = {{"mean ± 95 %"}, {"p"}, {"verdict"}};
    rows.panels.front().y = {.low = -5.6, .high = 0.6};
    for (std::size_t i = 0; i < names.size(); ++i) {
      panels.panels.push_back(panel_named(names[i]));
      panels.legend.push_back({names[i], look_of(i), As::joined_dots});
      ends.panels.front().ends.push_back({names[i], i == 0 ? " ↑ 1.2e+07" : "", 0.001 + 0.0001 * static_cast<double>(i), "#000000"});
      rows.panels.front().y.ticks.push_back({-static_cast<double>(i), names[i]});
      for (auto& column : rows.panels.front().columns) column.texts.push_back(column.head);
      words.panels.push_back(panel_named(names[i]));
      words.panels.back().x = axis_of_names(names, "attention", 0.4);
    }
    apart.panels = panels.panels;
    return {panels, apart, words, ends, rows};
  }

  }  // namespace

  TEST_CASE("every text lies within its figure, on wide pages and on narrow ones, for names of forty characters") {
    for (auto const& figure : figures_of_long_names())
      for (double const width : {Figure::width, Figure::narrow}) {
        CAPTURE(width);
        auto const layout = layout_of(figure, width);
        CHECK(holds_texts(layout));
        for (auto const& placed : layout.panels) {
          CHECK((placed.left > 0 && placed.right < width && placed.bottom > 0 && placed.top < layout.height));
          CHECK(placed.right - placed.left >= 0.3);
        }
      }
  }

  TEST_CASE("names that are shortened stay different") {
    auto const names = long_names(12);
    for (std::size_t const width : {8, 12, 24, 60}) {
      auto const labels = shortened(names, width);
      CHECK(std::set(labels.begin(), labels.end()).size() == names.size());
      for (auto const& label : labels) CHECK(columns(label) <= width);
    }
    CHECK(shortened({"entmax15 of cosine", "softmax"}, 9) == std::vector<std::string>{"entmax15…", "softmax"});
    CHECK(shortened({"cosine-entmax15 a", "cosine-entmax15 b"}, 9) == std::vector<std::string>{"cosi…15 a", "cosi…15 b"});
    CHECK(shortened({"aaaaaa1bbbbbb", "aaaaaa2bbbbbb"}, 7) == std::vector<std::string>{"aaa… #1", "aaa… #2"});
    CHECK(shortened({"größer als alles", "größer als wenig"}, 6) == std::vector<std::string>{"gr…les", "gr…nig"});
  }

  TEST_CASE("texts are wrapped behind blanks and marks, or where they must be") {
    CHECK(wrapped("position rotary · heads 2", 18) == std::vector<std::string>{"position rotary ·", "heads 2"});
    CHECK(wrapped("cosine-entmax15", 10) == std::vector<std::string>{"cosine-", "entmax15"});
    CHECK(wrapped("größergrößer", 6) == std::vector<std::string>{"größer", "größer"});
    CHECK(wrapped("loss between 0.173 and 0.373", 15) == std::vector<std::string>{"loss between", "0.173 and 0.373"});
    CHECK(wrapped("", 6) == std::vector<std::string>{""});
  }

  TEST_CASE("panels that would be too narrow stand in fewer columns; what axes share is written once") {
    Figure figure{.across = 3, .shared_x = true, .shared_y = true};
    for (auto const* const title : {"a", "b", "c"}) figure.panels.push_back(panel_named(title));
    auto const wide = layout_of(figure), narrow = layout_of(figure, Figure::narrow);
    CHECK(wide.across == 3);
    CHECK(narrow.across < 3);
    CHECK(narrow.height > wide.height);
    CHECK((wide.panels[0].has_y && !wide.panels[1].has_y));
    CHECK(std::ranges::count(wide.texts, "step", &PlacedText::text) == 3);
  }

  TEST_CASE("axes: of 0 alone, which has nothing below it; logarithmic ones of a figure write numbers in one way") {
    Range zero;
    zero.include(0);
    zero.widen(0.04);
    CHECK((zero.low > -0.1 && zero.high > 1));
    Figure figure{.panels = {panel_named("a"), panel_named("b")}};
    figure.panels[0].y = log_axis({1e-12, 1});
    figure.panels[1].y = log_axis({0.02, 1});
    share_x(figure, "d_k", Ticks::even);
    CHECK(figure.panels[0].y.ticks.back().text == "1e0");
    CHECK(figure.panels[1].y.ticks.front().text == "2e-2");
  }

  TEST_CASE("a plot has what a figure says: gaps, logarithmic axes, notes, and every kind of layer") {
    Figure figure{.panels = {panel_named("t")}};
    auto& panel = figure.panels.front();
    panel.y.log = true;
    panel.layers.front().points.insert(panel.layers.front().points.begin() + 1, {500, std::nan(""), 0, 0});
    panel.notes.push_back({.text = "it's", .x = 0.5, .y = 0.5, .of_frame = true});
    for (auto const as : {As::band, As::dots, As::joined_dots, As::intervals, As::joined_intervals, As::intervals_across})
      panel.layers.push_back({as, {{1, 0.001, 0.0005, 0.0015}}, look_of(1)});
    auto const commands = plot_of(figure).commands;
    for (char const* const part :
         {"\n\n1000 0.002", "set logscale y", "\"it\\047s\" at graph 0.5, graph 0.5", "filledcurves", "with points", "linespoints",
          "yerrorbars", "xerrorbars",
          "with lines lc rgb '#0072B2' lw 1.3 dt 2, '' using 1:2:3:4 with yerrorbars pt 5 ps 0.6 lc rgb '#0072B2' lw 1.3"})
      CHECK_MESSAGE(commands.find(part) != std::string::npos, part);  // the last: bars of a line with dashes have none
  }
}
