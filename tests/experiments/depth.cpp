// The study of depth: the laws that it is made to show, and settings that make no sense.

#include <fmt/ranges.h>

#include "experiments/folder/csv.hpp"
#include "experiments/study/study.hpp"
#include "tests/experiments/said.hpp"

TEST_SUITE("depth") {
  using namespace heed;

  TEST_CASE_FIXTURE(test::InFolder, "without skips the tokens become one with a cubic rate; 1/√L keeps the gradients of the queries") {
    auto const study =
        test::trained(folder, "d", "seed: 7\nstudy: {kind: depth, depth: [2, 4, 12], width: 16, tokens: 12, draws: 8, steps: [0, 2]}\n");
    auto const csv = parse_csv(test::get(study / "results.csv"));
    std::map<std::string, std::map<Index, double>> residuals, squares;
    for (auto const& line : csv_lines(csv, "results.csv")) {
      auto const key = line["skips"] + " " + line["norm"];
      double const mean = line.number("mean");
      if (line["step"] != "0") continue;
      if (line["quantity"] == "residual" && line["depth"] == "12") residuals[key][line.number<Index>("layer")] = mean;
      if (line["quantity"] == "gradient_query" && line["layer"] != "0") squares[key][line.number<Index>("depth")] += mean * mean;
    }
    CHECK(residuals.size() == 9);
    for (std::string const norm : {"pre", "post"}) {
      auto const& of = residuals["none " + norm];
      for (Index layer = 3; layer < 5; ++layer)  // ln 3 = 1.099 a layer
        CHECK(std::log(-std::log(of.at(layer + 1))) - std::log(-std::log(of.at(layer))) > 0.5);
      CHECK(of.at(12) < 1e-12);
      CHECK(residuals["one " + norm].at(12) > 0.01);
    }
    for (std::string const norm : {"none", "pre", "post"}) {
      auto const& of = squares["rsqrt_depth " + norm];
      CHECK(std::sqrt(of.at(12) / of.at(2)) == doctest::Approx(1).epsilon(0.25));
      CHECK(residuals["rsqrt_depth " + norm].at(12) > 0.8);
    }
    test::check_holds(test::get(study / "report.html"), {"not their mean", ": not doubly exponential", "after 2 updates",
                                                         "± 2 standard errors", "has at most 1e-13 times the first"});
  }

  TEST_CASE_FIXTURE(test::InFolder, "gradients of queries, keys and values: at initialisation whatever the steps; updates change them") {
    auto const results = [&](std::string const& steps) {
      auto const study = test::trained(
          folder, "d",
          "study: {kind: depth, depth: [3], skips: [one], norm: [pre], width: 8, tokens: 5, draws: 4, steps: " + steps + "}\n");
      std::map<std::string, double> means;  // by step, layer and quantity
      auto const csv = parse_csv(test::get(study / "results.csv"));
      for (auto const& line : csv_lines(csv, "results.csv"))
        means[line["step"] + " " + line["layer"] + " " + line["quantity"]] = line.number("mean");
      return means;
    };
    auto const first = results("[0]"), both = results("[0, 3]"), last = results("[3]");
    for (std::string const layer : {"0", "1", "2", "3"})
      for (std::string const matrix : {"query", "key", "value"}) {
        auto const key = " " + layer + " gradient_" + matrix;
        CAPTURE(key);
        CHECK(first.at("0" + key) > 0);
        CHECK(first.at("0" + key) == both.at("0" + key));
        CHECK(last.at("3" + key) == both.at("3" + key));
        CHECK(both.at("0" + key) != both.at("3" + key));
      }
    // AdamW lowers L: by ‖∂L/∂W‖₁ times the rate to first order, so the residuals and the norms stay near.
    for (auto const& [key, mean] : both)
      if (key.starts_with("3 ")) CHECK(mean == doctest::Approx(both.at("0" + key.substr(1))).epsilon(0.2));
  }

  /// The report's sentences on stacks whose −log residual is u of the layer, and with these gradients by depth.
  std::string reported(std::pair<Index, Index> layers, double (*u)(double layer), std::map<Index, double> const& gradients,
                       double relative_error = 0.1) {
    auto const& kind = Registry<StudyKind>::at("depth", "no");
    auto const settings = kind.settings();
    CsvRows rows;
    for (auto const& each : gradients) {
      auto const add = [&](Index layer, std::string const& quantity, double mean) {
        rows.push_back(line_of("one", "post", each.first, 0, layer, quantity, mean, relative_error * mean));
      };
      add(each.first, "residual", 0.1);
      for (std::string const projection : {"query", "key", "value"}) {
        add(0, "gradient_" + projection, each.second);
        add(1, "gradient_" + projection, 1);
        add(each.first, "gradient_" + projection, 0);
      }
      for (Index layer = layers.first; layer <= layers.second; ++layer) add(layer, "collapse", std::log(u(static_cast<double>(layer))));
    }
    return fmt::format("{}", fmt::join(kind.make(*settings, {}).report(rows).sentences, "; "));
  }

  TEST_CASE("doubly exponential is what is straight in log(−log r), whatever the layers; a power of L is what fits all depths") {
    using Function = double (*)(double);
    std::map<Index, double> const square{{4, 1}, {8, 4.2}, {16, 16}}, exponential{{4, 2.47}, {8, 70}, {16, 5.7e7}};
    for (auto const& layers : {std::pair<Index, Index>{1, 3}, {1, 5}, {1, 12}, {8, 10}, {3, 16}}) {
      CAPTURE(layers.first);
      CAPTURE(layers.second);
      for (Function const u : std::vector<Function>{[](double t) { return 0.7 * std::exp(1.1 * t); },  //
                                                    [](double t) { return 0.02 * std::exp(0.05 * t); }})
        test::check_holds(reported(layers, u, square), {": doubly exponential", "by L^2.00"});
      for (Function const u :
           std::vector<Function>{[](double t) { return 0.3 * t; }, [](double t) { return 2 * t; }, [](double t) { return 0.7 + 0.1 * t; },
                                 [](double t) { return 3 * std::log(t + 1); }, [](double t) { return 0.9 + 0.01 * std::sin(t); }})
        test::check_holds(reported(layers, u, exponential),
                          {": not doubly exponential", "by no power of L", "has at most 1e-13 times the first's"});
    }
    Function const u = [](double t) { return t; };
    test::check_holds(reported({1, 5}, u, {{4, 1.29}, {8, 2.43}, {16, 1.33}}), {"by no power of L"});
    test::check_holds(reported({1, 5}, u, square, 0.6), {"by no power of L"});
  }

  TEST_CASE("an interval that reaches below 0 keeps its end; a logarithmic axis has room down to a tenth of the value") {
    auto const panel = panel_of("", {FigureLayer{As::intervals, {CurvePoint{1, 2, -1, 5}}}}, true);
    CHECK(panel.layers.front().points.front().low == -1);
    CHECK((panel.y.low > 0.1 && panel.y.low < 0.2));
  }

  TEST_CASE_FIXTURE(test::InFolder, "settings that make no sense are refused") {
    for (auto const& [keys, word] : {std::pair<std::string, std::string>{"depth: [1.5]", "depth: 1.5 is not an integer"},
                                     {"steps: [0.5]", "steps: 0.5 is not an integer"},
                                     {"lr: 0", "study.lr"},
                                     {"depth: []", "depth: is empty"},
                                     {"steps: []", "steps: is empty"},
                                     {"norm: []", "norm: is empty"},
                                     {"skips: [two]", "study.skips"},
                                     {"norm: [rms]", "study.norm"},
                                     {"tokens: 1", "study.tokens"},
                                     {"draws: 1", "study.draws"}}) {
      test::put(folder / "d.yaml", "name: d\nstudy: {kind: depth, " + keys + "}\n");
      test::refuses({"check", (folder / "d.yaml").string()}, 2, {"d.yaml:2:", word});
    }
  }
}
