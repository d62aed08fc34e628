#include "experiments/report/report.hpp"

#include <regex>

#include <sys/stat.h>

#include "experiments/commands/commands.hpp"
#include "experiments/folder/csv.hpp"
#include "experiments/program/signals.hpp"
#include "experiments/report/attention_maps.hpp"
#include "experiments/report/figures.hpp"
#include "experiments/report/gnuplot.hpp"
#include "experiments/report/html.hpp"
#include "experiments/report/layout.hpp"
#include "experiments/report/page.hpp"
#include "experiments/report/traces.hpp"
#include "nn/files/npz.hpp"
#include "nn/files/utf8.hpp"
#include "tests/environment.hpp"
#include "tests/experiments/said.hpp"
#include "tests/json.hpp"

TEST_SUITE("report") {
  using namespace heed;
  using Json = test::OrderedJson;
  namespace fs = std::filesystem;

  namespace {

  /// Names that mean something to HTML, to gnuplot, to a shell, to CSV; one of an arm that never ended.
  std::vector<std::string> const names{"plain", "</script><script>alert(1)</script>", "it's `x` \"$y\" {z}_a^b\\ & é", "a,b", "absent"};

  std::string field(std::string const& text) {
    std::string result = "\"";
    for (char const c : text) result += c == '"' ? "\"\"" : std::string(1, c);
    return result + "\"";
  }

  bool has(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

  /// The page of a folder.
  std::string reported(fs::path const& folder) {
    write_report(folder, true);
    return test::get(folder / "report.html");
  }

  /// The folder of a finished ablation, as heed run leaves it: four arms × three seeds, one that is NaN on its way, one that failed.
  struct Finished {
    test::Folder folder;
    fs::path path = folder.path();

    Finished() {
      Json summary{{"ablation", "odd <b>"}, {"metric", "validation.loss"}, {"better", "lower"},         {"at", "last"},    {"unit", "nat"},
                   {"margin", 0.01},        {"seeds", {1, 2, 3}},          {"baseline", names.front()}, {"varied", {"x"}}, {"steps", 40}};
      std::string csv = "arm,x,seed,step,metric,value\n";
      for (std::size_t i = 0; i < names.size(); ++i) {
        Json arm{{"name", names[i]},
                 {"keys", {{"x", std::to_string(i)}}},
                 {"folders", Json::array()},
                 {"parameters", 12},
                 {"values", Json::object()}};
        bool const absent = names[i] == "absent";
        for (int seed = 1; !absent && seed <= 3; ++seed) {
          arm["folders"].push_back(fmt::format("arm{}-seed{}-0", i, seed));
          arm["values"][std::to_string(seed)] = 2 + 0.1 * static_cast<double>(i) + 0.01 * seed;
          for (int step = 0; step <= 40; step += 10) {
            auto const row = [&](char const* metric, double value) {
              csv += fmt::format("{},{},{},{},{},{}\n", field(names[i]), i, seed, step, metric, value);
            };
            row("validation.loss", i == 3 && step == 20 ? std::nan("") : 3 - 0.02 * step + 0.1 * static_cast<double>(i) + 0.01 * seed);
            row("probe.attention.entropy.layer0.head0", 2 - 0.03 * step);
            row("probe.attention.entropy.layer1.head0", i == 3 ? std::nan("") : 1 - 0.01 * step);
          }
        }
        if (!absent) {
          arm["mean"] = 2.02 + 0.1 * static_cast<double>(i);
          arm["interval"] = {2.0 + 0.1 * static_cast<double>(i), 2.04 + 0.1 * static_cast<double>(i)};
          arm["time.seconds"] = 1.25;
        }
        if (!absent && i > 0)
          arm["difference"] = {
              {"mean", 0.1 * static_cast<double>(i)}, {"interval", {0.05, 0.4}}, {"p", 0.25}, {"effect", nullptr}, {"verdict", "worse"}};
        summary["arms"].push_back(arm);
      }
      summary["failures"] = {
          {{"arm", "absent"}, {"seed", 1}, {"folder", "f"}, {"message", "step 3: NaN in <softmax>"}, {"log", {"a <log>", "end"}}}};
      summary["missing"] = {{{"arm", "absent"}, {"seed", 2}}};
      summary["sentences"] = {"a,b is worse & so on"};
      summary["warnings"] = {"different <revisions>"};
      summary["environment"] = {{"revision", "abc"}, {"dirty", true}, {"processor", "P&Q"}, {"threads", 1}};
      summary["configuration"] = "vary: {x: [<1>]}\n";
      test::put(path / "summary.json", summary.dump());
      test::put(path / "results.csv", csv);
    }

    /// Maps of two examples of four tokens, in which query i looks at key 0 with weight i/10.
    void put_maps(std::size_t arm, std::vector<int> const& steps, Index n = 4) const {
      auto const attention = path / fmt::format("arm{}-seed1-0", arm) / "attention";
      fs::create_directories(attention);
      std::vector<double> weights;
      std::vector<std::string> labels;
      for (Index row = 0; row < 2 * 2 * n; ++row)
        for (Index key = 0; key < n; ++key) weights.push_back(key == 0 ? 0.1 * static_cast<double>(row % n) : 0);
      for (Index i = 0; i < 2 * n; ++i) labels.push_back(i == 1 ? "</script>" : fmt::format("w{}", i));
      for (int const step : steps)
        write_npz(attention / fmt::format("step-{:06}.npz", step),
                  {NpyArray::of("tokens", Tensor::zeros({2, n}, DType::int64)), NpyArray::of("labels", labels),
                   NpyArray::of("layer0.weights", Tensor::of(weights, {2, 2, n, n}, DType::float32))});
    }

    /// The first trial's maps, with another array in the place of the one of its name, are left out with a warning.
    void refuse_map(std::vector<NpyArray> arrays, NpyArray const& changed, std::string const& message) const {
      *std::ranges::find(arrays, changed.name, &NpyArray::name) = changed;
      write_npz(path / "arm0-seed1-0/attention/step-000000.npz", arrays);
      auto material = read_material(path);
      attention_maps(material, 100'000);
      CHECK(has(material.warnings.back(), message));
    }

    std::string report() const { return reported(path); }
  };

  Figure learning_figure(Material const& material) {
    auto const all = figures(material);
    auto const found = std::ranges::find(all, std::string("validation_loss"), &Figure::name);
    REQUIRE(found != all.end());
    return *found;
  }

  Plot plot(std::string const& commands = "plot x\n") { return {.title = "a", .commands = commands}; }

  bool gnuplot_is_there() {
    static bool const there = draw_plots({plot()}).has_value();
    if (!there) MESSAGE("gnuplot is not installed: figures are not tested");
    return there;
  }

  }  // namespace

  TEST_CASE("a page says what was run, what came out and what failed, with every text escaped") {
    Finished const ablation;
    auto const html = ablation.report();
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
    CHECK(html_table("", {{"a", "b"}}).empty());
  }

  TEST_CASE("the page says what equivalent means, and without a margin that no arm is called so") {
    Finished const ablation;
    CHECK(has(ablation.report(), "the difference is smaller than the margin of 0.01 nat"));
    test::change_json(ablation.path / "summary.json", [](Json& summary) { summary["margin"] = nullptr; });
    auto const html = ablation.report();
    CHECK(has(html, "No arm is called equivalent"));
    CHECK(!has(html, "The grey band is the equivalence margin"));
  }

  TEST_CASE("what others have reported is drawn beside the arms, a number across all steps") {
    Finished const ablation;
    auto const published = [&] {
      std::map<std::string, Curve> curves;  // by name
      auto const panel = learning_figure(read_material(ablation.path)).panels.back();
      std::size_t next = panel.ends.size();
      for (auto layer = panel.layers.rbegin(); layer != panel.layers.rend() && next > 0; ++layer)
        if (--next; layer->as == As::joined_dots) curves[panel.ends[next].name] = layer->points;
      return curves;
    };
    CHECK(published().empty());
    test::change_json(ablation.path / "summary.json", [](Json& summary) {
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
    CHECK(has(ablation.report(), "grey: published values"));
  }

  TEST_CASE("a page fetches nothing and stays below 3 MB") {
    Finished const ablation;
    for (std::size_t arm = 0; arm < 4; ++arm) ablation.put_maps(arm, {0, 5, 10, 15, 20, 25, 30, 35, 40}, 200);
    auto const html = ablation.report();
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

  TEST_CASE("figures: every arm is named in each, in print and on the screen; the same data give the same bytes") {
    if (!gnuplot_is_there()) return;
    Finished const ablation;
    auto const html = ablation.report();
    for (char const* name : {"differences", "over_x", "validation_loss", "difference_curves", "probe_attention_entropy"}) {
      CAPTURE(name);
      auto const svg = test::get(ablation.path / "figures" / (std::string(name) + ".svg"));
      auto const pdf = test::get(ablation.path / "figures" / (std::string(name) + ".pdf"));
      CHECK(pdf.starts_with("%PDF"));
      CHECK((has(svg, "</svg>") && !has(svg, "<script")));
      if (std::string(name) != "over_x") CHECK(has(svg, ">a,b<"));
      if (std::string(name) == "differences") CHECK(has(svg, "it's `x` \"$y\" {z}_a^b\\ &amp; é"));
    }
    CHECK(has(html, "var(--series1)"));
    CHECK(!has(html, "rgb(  0, 114, 178)"));
    auto const svg = test::get(ablation.path / "figures/differences.svg"), pdf = test::get(ablation.path / "figures/differences.pdf");
    CHECK(ablation.report() == html);
    CHECK(test::get(ablation.path / "figures/differences.svg") == svg);
    if (has(pdf, "/CreationDate"))
      CHECK(test::get(ablation.path / "figures/differences.pdf") == pdf);  // cairo 1.18 hides a date (gnuplot.cpp)
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

  TEST_CASE("arms of several keys: every combination in one figure, panels with one legend, effects, arms folded") {
    Combined const ablation;
    auto const html = reported(ablation.folder.path());
    test::check_holds(html, {"x × heads: (b − a) × (2 − 1)", "+0.1000 ± 0.0500", "<summary>11 more</summary>", "lowest mean: a",
                             "averaged over all combinations of the other keys"});
    test::change_json(ablation.folder / "summary.json", [](Json& summary) {
      summary["effects"][0].update({{"averaged", 4}, {"combinations", 6}});
    });
    auto const partly = reported(ablation.folder.path());
    test::check_holds(partly, {"averaged over the combinations of the other keys for which all arms exist", "4 of 6"});
    if (!gnuplot_is_there()) return;
    auto const svg = test::get(ablation.folder / "figures/interaction.svg");
    test::check_holds(svg, {">heads 1<", ">heads 2<", ">a<", ">b<", ">c<", ">t5<", ">rotary<"});
    auto const curves = test::get(ablation.folder / "figures/validation_loss.svg");
    test::check_holds(curves, {">position t5 · heads 1<", ">position rotary · heads 2<"});
    CHECK(curves.find(">b<") == curves.rfind(">b<"));  // one legend
    CHECK(has(curves, ">b<"));
    CHECK(has(curves, "stroke-dasharray"));
    CHECK(html.find("of every combination") < html.find("Results by arm"));
  }

  TEST_CASE("no curve is dropped: numbers in their order, what comes after the first few is folded") {
    Combined const ablation;
    auto const material = read_material(ablation.folder.path());
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
    CHECK(has(reported(ablation.folder.path()), "<summary>curvature layer10</summary>"));
  }

  TEST_CASE("bands of shares stay within 0 and 1; the cells of heat maps are not blurred") {
    Combined const ablation;
    auto const material = read_material(ablation.folder.path());
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

  TEST_CASE("figures of names that mean something to gnuplot or to a file system") {
    if (!gnuplot_is_there()) return;
    test::Folder const folder;
    Json summary{{"ablation", "x"}, {"metric", "../a/b\xc3\xa9"}, {"seeds", {1, 2}}, {"baseline", "'plain'"}, {"arms", Json::array()}};
    std::string csv = "arm,seed,step,metric,value\n";
    for (auto const* name : {"'plain'", "50% of \"it\"", "'@x `date`\\\\"}) {
      summary["arms"].push_back({{"name", name}, {"values", {{"1", 2.0}}}, {"mean", 2.0}});
      if (*name != '\'' || name[1] == '@') summary["arms"].back()["difference"] = {{"mean", 0.1}, {"interval", {0.05, 0.4}}, {"p", 0.25}};
      for (int seed = 1; seed <= 2; ++seed)
        for (int step = 0; step <= 40; step += 10)
          csv += fmt::format("{},{},{},../a/b\xc3\xa9,{}\n{},{},{},probe.\xff/x.layer0,1.5\n", field(name), seed, step,
                             3 - 0.01 * step + seed, field(name), seed, step);
    }
    test::put(folder / "summary.json", summary.dump());
    test::put(folder / "results.csv", csv);
    auto const html = reported(folder.path());
    CHECK(!has(html, "is missing"));
    CHECK(valid_utf8(html) == html);
    for (char const* name : {"differences", "..-a-b--", "difference_curves", "probe_--x"}) {
      std::string file = name;
      std::ranges::replace(file, '.', '_');
      CAPTURE(file);
      auto const svg = test::get(folder / ("figures/" + file + ".svg"));
      if (file == "differences") CHECK(has(svg, "50% of \"it\""));
      CHECK(has(svg, "'@x `date`\\\\"));
    }
  }

  TEST_CASE("steps that go back are refused: figures take them in their order") {
    Finished const ablation;
    for (char const* const rows :
         {"plain,1,1,5,loss,3\nplain,1,1,4,loss,3\n", "plain,1,1,5,loss,3\nplain,1,1,5,loss,3\n", "plain,1,1,-5,loss,3\n"}) {
      test::put(ablation.path / "results.csv", std::string("arm,x,seed,step,metric,value\n") + rows);
      CHECK_THROWS_WITH_AS(read_material(ablation.path), doctest::Contains(" after step "), FileError);
    }
  }

  TEST_CASE("without gnuplot the report says how to get it") {
    Finished const ablation;
    test::Environment const path("PATH", ablation.path.string());
    auto const html = ablation.report();
    CHECK(has(html, "apt-get install gnuplot-nox"));
    CHECK(!has(html, "<figure"));
    CHECK(has(html, "2.1200"));
  }

  TEST_CASE("without gnuplot a report of the same results that has figures stays") {
    if (!gnuplot_is_there()) return;
    Finished const ablation;
    auto const rich = ablation.report();
    auto const together = ablation.path / "all/report.html";
    write_report(std::vector<fs::path>{ablation.path}, together, true);
    auto const both = test::get(together);
    std::optional<test::Environment> path(std::in_place, "PATH", ablation.path.string());
    auto const after = ablation.report();
    write_report(std::vector<fs::path>{ablation.path}, together, true);
    auto const both_after = test::get(together);
    fs::last_write_time(ablation.path / "summary.json", fs::file_time_type::clock::now() + std::chrono::hours(1));  // a copied folder
    auto const copied = ablation.report();
    auto const summary = test::get(ablation.path / "summary.json");
    test::put(ablation.path / "summary.json", summary + "\n");
    auto const renewed = ablation.report();  // of other results
    path.reset();
    CHECK(after == rich);
    CHECK(both_after == both);
    CHECK(copied == rich);
    CHECK(!has(renewed, "<figure"));
    CHECK(has(ablation.report(), "<figure"));
  }

  TEST_CASE("a gnuplot that hangs is ended: by a bound, and by the first signal that is noted") {
    test::Folder const folder;
    test::put(folder / "gnuplot", "#!/bin/sh\ntrap '' INT TERM HUP\nwhile :; do /bin/sleep 0.1; done\n");
    REQUIRE(::chmod((folder / "gnuplot").c_str(), 0755) == 0);
    std::vector<Plot> const plots{plot()};
    test::Environment const path("PATH", folder.path().string());
    auto const began = std::chrono::steady_clock::now();
    CHECK_THROWS_WITH_AS(draw_plots(plots, std::chrono::milliseconds(200)), "gnuplot did not end within 1 s", Hanging);
    pid_t const child = ::fork();
    if (child == 0) {
      note_signals();
      try {
        draw_plots(plots);
      } catch (Interrupted const&) {
        ::_exit(17);
      }
      ::_exit(1);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    ::kill(child, SIGTERM);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WEXITSTATUS(status) == 17);
    CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(20));
  }

  TEST_CASE("TMPDIR that is no folder: figures are drawn even so") {
    if (!gnuplot_is_there()) return;
    Finished const ablation;
    for (auto const& wrong : {ablation.path / "gone", ablation.path / "summary.json"}) {
      auto const html = [&] {
        test::Environment const there("TMPDIR", wrong.string());
        return ablation.report();
      }();
      CHECK(has(html, "<figure"));
      CHECK(!has(html, "is missing"));
    }
  }

  TEST_CASE("temporary files of a process that was killed while it drew go a day later, with the next figures") {
    if (!gnuplot_is_there()) return;
    test::Folder const folder;
    auto const left = folder / "heed-figures-abcdef", drawing = folder / "heed-figures-ghijkl", others = folder / "figures";
    for (auto const& path : {left, drawing, others}) {
      fs::create_directory(path);
      test::put(path / "0.svg", "<svg");
    }
    auto const now = fs::file_time_type::clock::now();
    for (auto const& path : {left, others}) fs::last_write_time(path, now - std::chrono::hours(25));
    fs::last_write_time(drawing, now - std::chrono::hours(23));
    {
      test::Environment const there("TMPDIR", folder.path().string());
      REQUIRE(draw_plots({plot()}));
    }
    CHECK(folder.names() == std::vector<std::string>{"figures", "heed-figures-ghijkl"});
  }

  TEST_CASE("every text in a figure is XML: what ends a section, and what XML has no place for") {
    if (!gnuplot_is_there()) return;
    for (std::string const text : {"a]]>b", "]]>", "]]]]>>", "x\xEF\xBF\xBEy", "x\xEF\xBF\xBFy", "<![CDATA[a]]>", "&amp;]]>\x01\x1B"}) {
      CAPTURE(text);
      auto const commands = fmt::format("set label 1 {} at graph 0.5, graph 0.5\nset xtics ({} 0)\nset title {}\nplot x title {}\n",
                                        gnuplot_text(text), gnuplot_tick(text), gnuplot_text(text), gnuplot_text(text));
      auto const svg = draw_plots({plot(commands)})->front().svg;
      for (char const* const wrong : {"]]>", "<![CDATA[", "\xEF\xBF\xBE", "\xEF\xBF\xBF"}) CHECK(!has(svg, wrong));
      CHECK(std::ranges::none_of(svg, [](char c) { return static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\t' && c != '\r'; }));
      if (text == "a]]>b") CHECK(has(svg, "a]]&gt;b"));
    }
  }

  TEST_CASE("a figure that gnuplot refuses is an error in its words") {
    if (gnuplot_is_there()) CHECK_THROWS_WITH_AS(draw_plots({plot("plot nonsense(\n")}), doctest::Contains("gnuplot: "), Error);
  }

  TEST_CASE("attention maps: one trial an arm, thinned to fit") {
    Finished const ablation;
    ablation.put_maps(0, {0, 10, 20});
    ablation.put_maps(1, {40});
    auto material = read_material(ablation.path);
    auto const json = Json::parse(attention_maps(material, 100'000));
    REQUIRE(json["arms"].size() == 2);
    CHECK(json["arms"][0]["name"] == "plain");
    CHECK(json["arms"][0]["seed"] == "1");
    CHECK(json["arms"][0]["steps"].size() == 3);
    CHECK(json["arms"][1]["steps"][0]["step"] == 40);
    CHECK(json["texts"] == Json({{"w0", "</script>", "w2", "w3"}, {"w4", "w5", "w6", "w7"}}));
    auto const& layer = json["arms"][0]["steps"][2]["layers"][0];
    CHECK(json["arms"][0]["steps"][2]["examples"][1] == Json({{"inputs", {{"text", 1}, {"length", 4}}}}));
    CHECK(layer["name"] == "layer 0");
    CHECK(layer["of"] == Json({"inputs", "inputs"}));
    CHECK(layer["heads"] == 2);
    CHECK(layer["peaks"].size() == 4);
    CHECK(layer["peaks"][0].get<double>() == doctest::Approx(0.3).epsilon(1e-3));
    std::string bytes;  // weight i/10 of key 0, as the root of its share of the largest
    for (int map = 0; map < 4; ++map)
      for (int query = 0; query < 4; ++query)
        for (int key = 0; key < 4; ++key)
          bytes += static_cast<char>(key == 0 ? std::lround(255 * std::sqrt(query * 0.1 / layer["peaks"][0].get<double>())) : 0);
    CHECK(layer["weights"] == base64(bytes));

    auto const small = attention_maps(material, 900);
    CHECK(small.size() <= 900);
    CHECK(Json::parse(small)["arms"][0]["steps"].back()["step"] == 20);
    CHECK(attention_maps(material, 10).empty());
    CHECK(has(material.warnings.back(), "too large"));

    auto const html = ablation.report();
    CHECK(html.find("</script>") == html.rfind("</script>", html.find("</script>\n</section>")));  // no token ends the data
    CHECK(has(html, "\\u003c/script>"));
  }

  TEST_CASE("maps of pictures: each picture once, in bytes, and how many fields are in a row") {
    Finished const ablation;
    auto const attention = ablation.path / "arm0-seed1-0/attention";
    fs::create_directories(attention);
    std::vector<NpyArray> const arrays{NpyArray::of("inputs.labels", {"<bos>", "a", "<bos>", "b"}),
                                       NpyArray::of("image.pixels", Tensor::of(std::vector<Index>{0, 4, 8, 16, 0, 4, 8, 16}, {2, 1, 2, 2})),
                                       NpyArray::of("layer0.weights", Tensor::full({2, 1, 2, 4}, 0.25, DType::float32)),
                                       NpyArray::of("layer0.of", {"attention", "inputs", "image"}),
                                       NpyArray::of("layer0.across", Tensor::full({}, 2, DType::int64))};
    write_npz(attention / "step-000000.npz", arrays);
    auto material = read_material(ablation.path);
    auto const json = Json::parse(attention_maps(material, 100'000));
    CHECK(json["pictures"] == Json::parse("[{\"channels\": 1, \"height\": 2, \"width\": 2, \"pixels\": \"AECA/w==\"}]"));
    auto const& step = json["arms"][0]["steps"][0];
    CHECK(step["layers"][0]["across"] == 2);
    for (std::size_t const example : {0, 1}) CHECK(step["examples"][example]["image"]["picture"] == 0);
    auto const refused = [&](NpyArray const& changed, std::string const& message) { ablation.refuse_map(arrays, changed, message); };
    refused(NpyArray::of("layer0.across", Tensor::full({}, 3, DType::int64)), "layer0.across does not divide its keys");
    refused(NpyArray::of("image.pixels", Tensor::zeros({1, 1, 2, 2}, DType::int64)),
            "image.pixels is not [examples, channels, height, width]");
  }

  TEST_CASE("maps from a source to a target: texts of each, as long as they are, and what looks at what; layers in their order") {
    Finished const ablation;
    auto const attention = ablation.path / "arm0-seed1-0/attention";
    fs::create_directories(attention);
    auto const uniform = [](Index n, Index m) { return Tensor::full({2, 1, n, m}, 1.0 / static_cast<double>(m), DType::float32); };
    auto const lengths = [](Index a, Index b) { return Tensor::of(std::vector<Index>{a, b}, {2}); };
    std::vector<NpyArray> arrays{
        NpyArray::of("inputs.labels", {"<bos>", "a", "<bos>", "<pad>"}), NpyArray::of("inputs.lengths", lengths(2, 1)),
        NpyArray::of("source.labels", {"ein", "x", "<eos>", "so", "<eos>", "<pad>"}), NpyArray::of("source.lengths", lengths(3, 2))};
    for (int const layer : {0, 2, 10}) {
      bool const encodes = layer == 0;
      arrays.push_back(NpyArray::of(fmt::format("layer{}.weights", layer), uniform(encodes ? 3 : 2, 3)));
      arrays.push_back(
          NpyArray::of(fmt::format("layer{}.of", layer), {encodes ? "encoder" : "decoder", encodes ? "source" : "inputs", "source"}));
    }
    write_npz(attention / "step-000000.npz", arrays);
    auto material = read_material(ablation.path);
    auto const json = Json::parse(attention_maps(material, 100'000));
    auto const& step = json["arms"][0]["steps"][0];
    auto const text = [&](std::size_t example, char const* part) {
      return json["texts"][step["examples"][example][part]["text"].get<std::size_t>()];
    };
    CHECK(text(0, "inputs") == Json({"<bos>", "a"}));
    CHECK(text(0, "source") == Json({"ein", "x", "<eos>"}));
    CHECK(text(1, "inputs") == Json::array({"<bos>"}));
    CHECK(text(1, "source") == Json({"so", "<eos>"}));
    CHECK(step["examples"][1]["source"]["length"] == 2);
    CHECK(step["layers"].size() == 3);
    CHECK(step["layers"][0]["of"] == Json({"source", "source"}));
    CHECK(step["layers"][1]["name"] == "layer 2: decoder");
    CHECK(step["layers"][2]["name"] == "layer 10: decoder");
    CHECK(step["layers"][2]["of"] == Json({"inputs", "source"}));

    auto const refused = [&](NpyArray const& changed, std::string const& message) { ablation.refuse_map(arrays, changed, message); };
    refused(NpyArray::of("layer2.of", {"decoder", "inputs"}), "layer2.of is not a name and two parts");
    refused(NpyArray::of("source.labels", {"a", "b", "c"}), "source.labels is not of 2 texts");
    refused(NpyArray::of("source.lengths", lengths(4, 1)), "source.lengths do not fit its labels");
    refused(NpyArray::of("layer2.weights", Tensor::zeros({2, 2}, DType::float32)),
            "layer2.weights is not [examples, heads, queries, keys]");
  }

  TEST_CASE("a long row is told as what it is") {
    Finished const ablation;
    ablation.put_maps(0, {0}, 100);
    auto material = read_material(ablation.path);
    auto const json = Json::parse(attention_maps(material, 1'000'000));
    auto const& step = json["arms"][0]["steps"][0];
    CHECK(json["texts"][0].size() == 64);
    CHECK(step["examples"][0]["inputs"]["length"] == 100);
    CHECK(step["layers"][0]["queries"] == 64);
    CHECK(step["layers"][0]["places"] == Json({100, 100}));
  }

  TEST_CASE("a damaged map is a warning, and the rest is shown") {
    Finished const ablation;
    ablation.put_maps(0, {0, 10});
    auto const path = ablation.path / "arm0-seed1-0/attention/step-000010.npz";
    auto bytes = test::get(path);
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] + 1);
    test::put(path, bytes);
    auto const html = ablation.report();
    CHECK(has(html, "step-000010.npz"));
    CHECK(has(html, "is damaged"));
  }

  TEST_CASE("a single run has curves, last values and reference losses") {
    test::Folder const folder;
    test::put(folder / "summary.json", R"({"name": "tiny", "finished": true, "steps": 20, "parameters": 7, "validation.loss": 1.5,
      "yardsticks": {"2-gram": 2.25}, "time.seconds": 2.0, "environment": {"processor": "P"}, "configuration": "name: tiny\n"})");
    test::put(folder / "metrics.jsonl",
              "{\"step\":0,\"loss\":3.5,\"validation.loss\":3.25}\n{\"step\":10,\"loss\":2,\"validation.loss\":2}\n"
              "{\"step\":20,\"validation.loss\":1.5}\n");
    CHECK(!has_report(folder.path()));
    auto const html = reported(folder.path());
    CHECK(has_report(folder.path()));
    test::check_holds(html, {">tiny<", "2-gram", "2.2500", "-0.7500", "name: tiny"});
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

  TEST_CASE("what is no finished folder is refused by name") {
    test::Folder const folder;
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

  TEST_CASE("CSV with quotes, commas and line ends inside") {
    using Lines = std::vector<std::vector<std::string>>;
    CHECK(parse_csv("a,\"b,\"\"c\"\"\nd\",\r\n,e\n") == Lines{{"a", "b,\"c\"\nd", ""}, {"", "e"}});
    CHECK(parse_csv("") == Lines{});
  }

  TEST_CASE("an .npz is read as it was written, and refused if it is not one") {
    test::Folder const folder;
    auto const path = folder / "a.npz";
    write_npz(path, {NpyArray::of("x", Tensor::of(std::vector<double>{1, 2, 3, 4, 5, 6}, {2, 3})),
                     NpyArray::of("n", Tensor::of(std::vector<Index>{-7}, {})), NpyArray::of("s", {"a", "éΣ", ""})});
    auto const arrays = read_npz(path);
    CHECK(arrays.at("x").tensor().to_vector() == std::vector<double>{1, 2, 3, 4, 5, 6});
    CHECK(arrays.at("x").tensor().shape() == Shape{2, 3});
    CHECK(arrays.at("n").tensor().item() == -7);
    CHECK(arrays.at("s").texts() == std::vector<std::string>{"a", "éΣ", ""});
    CHECK_THROWS_AS(arrays.at("s").tensor(), FileError);
    CHECK_THROWS_AS(arrays.at("x").texts(), FileError);
    auto const whole = test::get(path);
    for (std::size_t size = 0; size < whole.size(); size += 7) {
      test::put(path, whole.substr(0, size));
      CHECK_THROWS_AS(read_npz(path), FileError);
    }
    for (std::size_t at = 0; at < whole.size(); at += 3) {  // damage is found, or does not matter; it never crashes
      auto damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
      test::put(path, damaged);
      try {
        for (auto const& [name, array] : read_npz(path)) name == "s" ? (void)array.texts() : (void)array.tensor();
      } catch (Error const&) {
      }
    }
  }
}
