#include "experiments/report/report.hpp"

#include <regex>

#include "experiments/commands/commands.hpp"
#include "experiments/report/html.hpp"
#include "experiments/report/layout.hpp"
#include "experiments/report/traces.hpp"
#include "tests/experiments/finished_ablation.hpp"
#include "tests/experiments/said.hpp"

TEST_SUITE("report") {
  using namespace heed;
  using Json = test::OrderedJson;
  namespace fs = std::filesystem;
  using test::field, test::Finished, test::gnuplot_is_there, test::has, test::reported;

  TEST_CASE_FIXTURE(Finished, "a page says what was run, what came out and what failed, with every text escaped") {
    auto const html = report();
    test::check_holds(
        html, {"odd &lt;b&gt;", "&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;", "it&#39;s `x` &quot;$y&quot; {z}_a^b\\ &amp; é",
               "absent", "step 3: NaN in &lt;softmax&gt;", "a &lt;log&gt;", "different &lt;revisions&gt;", "a,b is worse &amp; so on",
               "vary: {x: [&lt;1&gt;]}", "P&amp;Q", "abc (modified)", "absent (seed 2)", "2.1200", "[2.1000, 2.1400]", "0.25"});
    CHECK(!has(html, "<script"));  // without maps there is no program at all
    for (char const* tag : {"article", "section", "figure", "svg", "table", "details", "pre"}) {
      std::regex const opening(fmt::format("<{}[ >]", tag)), closing(fmt::format("</{}>", tag));
      auto const count = [&](std::regex const& pattern) {
        return std::distance(std::sregex_iterator(html.begin(), html.end(), pattern), std::sregex_iterator());
      };
      CHECK_MESSAGE(count(opening) == count(closing), tag);
    }
  }

  TEST_CASE("cells of a table say the name of their column, for pages too narrow for a head") {
    auto const kind = [](std::size_t row, std::size_t column) { return row == 2 && column == 1 ? "text" : ""; };
    auto const html = html_table("what", {{"arm", "a<b", "p", "x"}, {"r", "1", "2", "3"}, {"s", "4"}}, kind);
    test::check_holds(html, {"class=\"many\"", "<td data-column=\"a&lt;b\">1</td>", "<td data-column=\"x\">3</td>",
                             "<td data-column=\"a&lt;b\" class=\"text\">4</td>"});
    CHECK(has(html_table("", TableRows(2, std::vector<std::string>(9, "h"))), "class=\"wide\""));
    CHECK(has(html_table("", {{"a", "b", "c"}, {"1", "2", "3"}}), "<table>"));
    auto const claims =
        html_table("", {{"claim", "criterion", "measured"}, {"c", "difference of one and another", "1"}, {"", "short", "2"}});
    test::check_holds(
        claims, {"<th scope=\"col\" class=\"text\">criterion</th><th scope=\"col\">measured</th>",
                 "<th scope=\"row\" data-column=\"claim\" data-row=\"c\"></th><td data-column=\"criterion\" class=\"text\">short</td>"});
    CHECK(html_table("", {{"a", "b"}}).empty());
  }

  TEST_CASE_FIXTURE(Finished, "the page says what equivalent means, and without a margin that no arm is called so") {
    CHECK(has(report(), "the difference is smaller than the margin of 0.01 nat"));
    for (char const* const column : {"Paired t", "paired\u00a0t", "Effect: "}) CHECK(!has(report(), column));  // no arm has a value there
    test::change_json(path / "summary.json", [](Json& summary) { summary["margin"] = nullptr; });
    auto const html = report();
    CHECK(has(html, "No arm is called equivalent"));
    CHECK(!has(html, "The grey band is the equivalence margin"));
  }

  TEST_CASE_FIXTURE(Finished, "what others have reported is drawn beside the arms, a number across all steps") {
    auto const published = [&] {
      std::map<std::string, Curve> curves;  // by name
      auto const all = figures(read_material(path));
      auto const learning = std::ranges::find(all, std::string("validation_loss"), &Figure::name);
      REQUIRE(learning != all.end());
      auto const& panel = learning->panels.back();
      std::size_t next = panel.ends.size();
      for (auto layer = panel.layers.rbegin(); layer != panel.layers.rend() && next > 0; ++layer)
        if (--next; layer->as == As::joined_dots) curves[panel.ends[next].name] = layer->points;
      return curves;
    };
    CHECK(published().empty());
    test::change_json(path / "summary.json", [](Json& summary) {
      summary["published"] = {{{"name", "a paper"}, {"curve", Json::array()}, {"value", 2.5}},
                              {{"name", "a page"}, {"curve", {{10, 2.75}, {40, 2.25}}}, {"value", 2.25}}};
    });
    auto const drawn = published();
    auto const is = [&](std::string const& name, std::vector<std::pair<double, double>> const& points) {
      auto const& curve = drawn.at(name);
      return std::ranges::equal(curve, points, [](CurvePoint const& point, auto const& expected) {
        return std::pair(point.x, point.y) == expected && point.low == point.y && point.high == point.y;
      });
    };
    CHECK(is("a paper", {{0, 2.5}, {40, 2.5}}));
    CHECK(is("a page", {{10, 2.75}, {40, 2.25}}));
    CHECK(has(report(), "grey: published values"));
  }

  TEST_CASE_FIXTURE(Finished, "a page fetches nothing and stays below 3 MB") {
    for (std::size_t arm = 0; arm < 4; ++arm) put_maps(arm, {0, 5, 10, 15, 20, 25, 30, 35, 40}, 200);
    auto const html = report();
    CHECK(html.size() < 3'000'000);
    CHECK(has(html, "default-src 'none'"));
    std::regex const fetch(R"((src|href|action|data|poster)\s*=\s*["']?\s*(https?:|//|file:))", std::regex::icase);
    CHECK(!std::regex_search(html, fetch));
    CHECK(!has(html, "@import"));
    std::set<std::string> ids;
    std::regex const id(R"re( id=["']([^"']*)["'])re");
    auto const page = html.substr(0, html.find("<script>\n"));
    for (std::sregex_iterator found(page.begin(), page.end(), id), end; found != end; ++found)
      CHECK_MESSAGE(ids.insert((*found)[1]).second, (*found)[1]);
  }

  TEST_CASE_FIXTURE(Finished, "figures: every arm is named in each, in print and on the screen; the same data give the same bytes") {
    if (!gnuplot_is_there()) return;
    auto const html = report();
    for (char const* name : {"differences", "over_x", "validation_loss", "difference_curves", "probe_attention_entropy"}) {
      CAPTURE(name);
      auto const svg = test::get(path / "figures" / (std::string(name) + ".svg"));
      auto const pdf = test::get(path / "figures" / (std::string(name) + ".pdf"));
      CHECK(pdf.starts_with("%PDF"));
      CHECK((has(svg, "</svg>") && !has(svg, "<script")));
      if (std::string(name) != "over_x") CHECK(has(svg, ">a,b<"));
      if (std::string(name) == "differences") CHECK(has(svg, "it's `x` \"$y\" {z}_a^b\\ &amp; é"));
    }
    CHECK(has(html, "var(--series1)"));
    CHECK(!has(html, "rgb(  0, 114, 178)"));
    auto const svg = test::get(path / "figures/differences.svg"), pdf = test::get(path / "figures/differences.pdf");
    CHECK(report() == html);
    CHECK(test::get(path / "figures/differences.svg") == svg);
    if (has(pdf, "/CreationDate")) CHECK(test::get(path / "figures/differences.pdf") == pdf);  // cairo 1.18 hides a date (gnuplot.cpp)
  }

  namespace {

  /// An ablation of three by two by two arms, with a share and many metrics.
  struct Combined {
    test::Folder folder;

    Combined() {
      Json summary{{"ablation", "grid"}, {"metric", "validation.loss"},    {"unit", "nat"},
                   {"seeds", {1, 2, 3}}, {"baseline", "a · t5 · heads=1"}, {"varied", {"m.x", "m.position", "m.heads"}},
                   {"steps", 40},        {"arms", Json::array()}};
      std::string csv = "arm,m.x,m.position,m.heads,seed,step,metric,value\n";
      double value = 2;
      for (char const* x : {"a", "{align: b}", "c"})
        for (char const* position : {"t5", "rotary"})
          for (char const* heads : {"1", "2"}) {
            auto const name = fmt::format("{} · {} · heads={}", *x == '{' ? "b" : x, position, heads);
            value += 0.1;
            Json arm{{"name", name},
                     {"keys", {{"m.x", x}, {"m.position", position}, {"m.heads", heads}}},
                     {"mean", value},
                     {"interval", {value - 0.05, value + 0.05}},
                     {"values", {{"1", value}, {"2", value}, {"3", value}}}};
            if (value > 2.15) arm["difference"] = {{"mean", value - 2.1}, {"interval", {0.05, 0.4}}, {"p", 0.25}, {"verdict", "unclear"}};
            summary["arms"].push_back(arm);
            for (int seed = 1; seed <= 3; ++seed)
              for (int step = 0; step <= 40; step += 10) {
                auto const row = [&](std::string const& metric, double y) {
                  csv += fmt::format("{},{},{},{},{},{},{},{}\n", field(name), field(x), position, heads, seed, step, metric, y);
                };
                row("validation.loss", value + 1 - 0.02 * step + 0.01 * seed);
                row("validation.accuracy", seed == 1 && step < 20 ? 0.5 : 0.98);
                for (int layer : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}) row(fmt::format("probe.curvature.layer{}", layer), 0.01 * step + layer);
              }
          }
      summary["effects"] = {
          {{"name", "heads: 2 − 1"}, {"mean", 0.1}, {"interval", {0.05, 0.15}}, {"p", 0.25}},
          {{"name", "x × heads: (b − a) × (2 − 1)"}, {"interaction", true}, {"mean", 0.0}, {"interval", nullptr}, {"p", 1}}};
      summary["sentences"] = {"lowest mean: a", "no interaction is clear"};
      for (int i = 1; i < 12; ++i) summary["sentences"].push_back(fmt::format("arm {} is unclear", i));
      test::put(folder / "summary.json", summary.dump());
      test::put(folder / "results.csv", csv);
    }
  };

  }  // namespace

  TEST_CASE_FIXTURE(Combined, "arms of several keys: every combination in one figure, panels with one legend, effects, arms folded") {
    auto const html = reported(folder.path());
    test::check_holds(html, {"x × heads: (b − a) × (2 − 1)", "+0.1000 ± 0.0500", "<summary>11 more</summary>", "lowest mean: a",
                             "averaged over all combinations of the other keys"});
    test::change_json(folder / "summary.json", [](Json& summary) { summary["effects"][0].update({{"averaged", 4}, {"combinations", 6}}); });
    auto const partly = reported(folder.path());
    test::check_holds(partly, {"averaged over the combinations of the other keys for which all arms exist", "4 of 6"});
    if (!gnuplot_is_there()) return;
    auto const svg = test::get(folder / "figures/interaction.svg");
    test::check_holds(svg, {">heads 1<", ">heads 2<", ">a<", ">b<", ">c<", ">t5<", ">rotary<"});
    auto const curves = test::get(folder / "figures/validation_loss.svg");
    test::check_holds(curves, {">position t5 · heads 1<", ">position rotary · heads 2<"});
    CHECK(curves.find(">b<") == curves.rfind(">b<"));  // one legend
    CHECK(has(curves, ">b<"));
    CHECK(has(curves, "stroke-dasharray"));
    CHECK(html.find("of every combination") < html.find("Results by arm"));
  }

  TEST_CASE_FIXTURE(Combined, "no curve is dropped: numbers in their order, what comes after the first few is folded") {
    auto const material = read_material(folder.path());
    std::vector<std::string> layers;
    std::size_t folded = 0;
    for (auto const& figure : figures(material)) {
      if (figure.name.starts_with("probe_curvature_layer")) layers.push_back(figure.name);
      folded += figure.further ? 1 : 0;
    }
    CHECK(layers.size() == 10);
    CHECK(layers[1] == "probe_curvature_layer2");
    CHECK(layers.back() == "probe_curvature_layer10");
    CHECK(folded == 7);  // of twelve
    if (!gnuplot_is_there()) return;
    CHECK(has(reported(folder.path()), "<summary>curvature layer10</summary>"));
  }

  TEST_CASE_FIXTURE(Combined, "a legend says of which key its numbers are") {
    auto material = read_material(folder.path());
    std::erase_if(material.arms, [](ArmResult const& arm) { return !has(arm.name, "t5"); });
    for (auto& arm : material.arms) std::erase_if(arm.keys, [](auto const& key) { return key.first == "m.position"; });
    auto const interaction = figures(material).front();
    REQUIRE(interaction.legend.size() == 2);
    CHECK(interaction.legend.front().name == "heads=1");
  }

  TEST_CASE_FIXTURE(Combined, "bands of shares stay within 0 and 1; the cells of heat maps are not blurred") {
    auto const material = read_material(folder.path());
    auto const shares = traces_of(material, "validation.accuracy", false);
    REQUIRE(!shares.empty());
    CHECK(shares.front().points.front().y == doctest::Approx((0.5 + 0.98 + 0.98) / 3));
    for (auto const& point : shares.front().points) CHECK((point.low >= 0 && point.high <= 1));
    CHECK(traces_of(material, "validation.loss", false).front().points.front().high > 1);
    if (!gnuplot_is_there()) return;
    Finished const probed;
    probed.report();
    CHECK(has(test::get(probed.path / "figures/probe_attention_entropy.svg"), "<image style='image-rendering:pixelated'"));
  }

  TEST_CASE("neighbouring arms differ in dashes beside colours, and no two of many look the same") {
    std::set<std::pair<std::string, std::size_t>> solid;
    for (std::size_t i = 0; i < 21; ++i) CHECK(solid.insert({solid_look(i).colour, solid_look(i).dash}).second);
    CHECK(solid_look(line_colours - 1).dash == 1);
    Material material;
    material.baseline = "0";
    std::set<std::pair<std::string, std::size_t>> looks;
    for (int i = 0; i < 25; ++i) material.arms.emplace_back().name = std::to_string(i);
    for (std::size_t i = 0; i < 25; ++i) {
      auto const style = style_of(material, i);
      CHECK(looks.insert({style.colour, style.dash}).second);
      if (i > 0) CHECK(style.dash != style_of(material, i - 1).dash);
    }
  }

  TEST_CASE_FIXTURE(Finished, "steps that go back are refused: figures take them in their order") {
    for (char const* const rows :
         {"plain,1,1,5,loss,3\nplain,1,1,4,loss,3\n", "plain,1,1,5,loss,3\nplain,1,1,5,loss,3\n", "plain,1,1,-5,loss,3\n"}) {
      test::put(path / "results.csv", std::string("arm,x,seed,step,metric,value\n") + rows);
      CHECK_THROWS_WITH_AS(read_material(path), doctest::Contains(" after step "), FileError);
    }
  }

  TEST_CASE_FIXTURE(test::InFolder, "a single run has curves, last values and reference losses") {
    test::put(folder / "summary.json", R"({"name": "tiny", "finished": true, "steps": 20, "parameters": 7, "validation.loss": 1.5,
      "yardsticks": {"2-gram": 2.25}, "time.seconds": 2.0, "environment": {"processor": "P"}, "configuration": "name: tiny\n"})");
    test::put(
        folder / "metrics.jsonl",
        R"({"step":0,"loss":3.5,"validation.loss":3.25,"validation.accuracy.b10":0,"validation.accuracy.b9":0,"probe.attention.entropy.layer0":1}
{"step":10,"loss":2,"validation.loss":2,"validation.accuracy.b10":1,"validation.accuracy.b9":1,"probe.attention.entropy.layer0":2}
{"step":20,"validation.loss":1.5}
)");
    CHECK(!has_report(folder.path()));
    auto const html = reported(folder.path());
    CHECK(has_report(folder.path()));
    test::check_holds(html, {">tiny<", "2-gram", "2.2500", "-0.7500", "name: tiny"});
    CHECK(figures(read_material(folder.path())).back().caption == "By layer and step.");
    CHECK(html.find(">validation.accuracy.b9<") < html.find(">validation.accuracy.b10<"));
    if (gnuplot_is_there()) CHECK(fs::exists(folder / "figures/validation_loss.pdf"));
  }

  TEST_CASE("several folders: a report each, and one of all") {
    Finished const one, two;
    test::Folder const output;
    ReportOptions options;
    options.paths = {one.path, two.path};
    options.folders.output = output.path();
    options.quiet = true;
    CHECK(report(options) == Exit::done);
    CHECK(fs::exists(one.path / "report.html"));
    auto const html = test::get(output / "report.html");
    CHECK(has(html, "<article id=\"part2\">"));
    for (auto const& nowhere : {std::string("nowhere"), std::string(300, 'n')}) {
      options.paths = {nowhere};
      CHECK_THROWS_AS(report(options), ConfigError);
    }
  }

  TEST_CASE_FIXTURE(test::InFolder, "what is no finished folder is refused by name") {
    CHECK_THROWS_WITH_AS(write_report(folder.path(), true), doctest::Contains("summary.json: cannot be read"), FileError);
    for (char const* text : {"", "{", "{}}"}) {
      test::put(folder / "summary.json", text);
      CHECK_THROWS_WITH_AS(write_report(folder.path(), true), doctest::Contains("summary.json: the file is not JSON"), FileError);
    }
    for (char const* text : {"[]", "{}", R"({"ablation": "a"})", R"({"ablation": "a", "metric": 3, "seeds": [], "arms": []})"}) {
      test::put(folder / "summary.json", text);
      CHECK_THROWS_WITH_AS(write_report(folder.path(), true), doctest::Contains("is not a summary of a run or an ablation"), FileError);
    }
    Finished const ablation;
    test::put(ablation.path / "results.csv", "arm,x,seed,step,metric,value\nplain,1,one,0,loss,3\n");
    CHECK_THROWS_WITH_AS(write_report(ablation.path, true), doctest::Contains("line 2"), FileError);
  }

  TEST_CASE("the range of a part of training holds the line that enters it between two points") {
    FigureLayer const falling{As::line, {CurvePoint::bare(0, 10), CurvePoint::bare(30, 4), CurvePoint::bare(40, 2)}};
    auto const range = range_from({falling}, 20, Outliers({2}));
    CHECK((range.holds(6) && !range.holds(7) && range.holds(2)));  // 10 + (4 − 10) · 20/30
  }

  TEST_CASE("curves: mean and interval over the seeds; bins where there are many steps; a gap where a value is not finite") {
    auto const curve = curve_of({{{0, 1.0}, {10, 2.0}, {20, std::nan("")}}, {{0, 3.0}, {10, 2.0}, {20, 1.0}}});
    REQUIRE(curve.size() == 3);
    CHECK(curve[0].y == 2);
    CHECK(curve[0].high - curve[0].y == doctest::Approx(12.706205).epsilon(1e-6));  // t with 1 degree of freedom, s/√n = 1
    CHECK(curve[1].low == 2);
    CHECK(std::isnan(curve[2].y));

    std::vector<std::pair<Index, double>> long_run;
    for (int step = 0; step < 1000; ++step) long_run.emplace_back(step, step);
    auto const binned = curve_of({long_run}, 100);
    REQUIRE(binned.size() == 100);
    CHECK(binned[0].x == 4.5);
    CHECK(binned[99].y == 994.5);
  }

  TEST_CASE("labels keep their order and a distance, and stay inside") {
    auto const heights = spread({0.5, 0.5, 0.52, 0.0, 1.0}, 0.1);
    CHECK(heights[0] == doctest::Approx(0.5 + 0.02 / 3 - 0.1));
    CHECK(heights[1] == doctest::Approx(0.5 + 0.02 / 3));
    CHECK(heights[2] == doctest::Approx(0.5 + 0.02 / 3 + 0.1));
    CHECK(heights[3] == 0);
    CHECK(heights[4] == 1);
    auto const crowded = spread(std::vector<double>(11, 0.9), 0.3);
    CHECK(crowded.front() == doctest::Approx(0));
    CHECK(crowded.back() == doctest::Approx(1));
    CHECK(spread({}, 0.1).empty());
  }
}
