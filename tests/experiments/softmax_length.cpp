// The study of softmax by the number of keys: measurements beside exact expectations, at values that its file does not have.

#include "experiments/ablation/scaling/quadrature.hpp"
#include "experiments/folder/csv.hpp"
#include "tests/experiments/said.hpp"
#include "tests/json.hpp"

TEST_SUITE("softmax_length") {
  using namespace heed;

  namespace {

  std::filesystem::path study(test::Folder const& folder, std::string const& keys) {
    test::put(folder / "s.yaml", "name: s\nseed: 5\nstudy: {kind: softmax_length, " + keys + "}\n");
    test::run_well({"run", (folder / "s.yaml").string(), "--output", folder.path().string(), "--quiet", "--fresh"});
    return folder / "s";
  }

  }  // namespace

  TEST_CASE("every cell lies within five standard errors of its closed form, for other n, σ and ρ; the sphere has its exponents") {
    test::Folder const folder;
    auto const path = study(folder, "keys: [24, 200, 1500], sigma: [0.7, 2.6, 6], correlation: [0.4, 0.9], width: [3, 6], scores: 1000000");
    auto const csv = parse_csv(test::get(path / "results.csv"));
    CHECK(csv.front() ==
          CsvRows::value_type{"scores", "keys", "sigma", "correlation", "width", "quantity", "mean", "standard_error", "theory"});
    int compared = 0;
    std::map<std::string, std::vector<std::pair<double, double>>> gaps;
    for (auto const& line : csv_lines(csv, "results.csv")) {
      CAPTURE(line.place());
      double const mean = line.number("mean"), error = line.number("standard_error");
      if (line["quantity"] == "gap_function" && line["scores"] == "sphere") gaps[line["width"]].push_back({line.number("keys"), mean});
      if (line["theory"].empty()) continue;
      // The closed forms once more, by the scores' own variance.
      double const sigma = line.number("sigma"), rho = line.number("correlation");
      auto const exact = softmax_of_normal_logits(sigma * sigma * (1 - rho), {line.number<Index>("keys")}).front();
      std::map<std::string, double> const by_name{{"trace_jacobian", exact.trace},
                                                  {"jacobian_norm_squared", exact.frobenius_squared},
                                                  {"entropy", exact.entropy},
                                                  {"max_weight", exact.max_weight}};
      CHECK(std::abs(mean - by_name.at(line["quantity"])) < 5 * error);
      ++compared;
    }
    CHECK(compared == 3 * (3 + 4) * 4);
    for (auto const& gap : gaps) {
      auto const& [width, points] = gap;
      CAPTURE(gap.first);
      double const exponent = std::log(points.back().second / points.front().second) / std::log(points.back().first / points.front().first);
      CHECK(exponent == doctest::Approx(2 / (std::stod(width) - 1)).epsilon(0.15));
    }
    test::check_holds(test::get(path / "report.html"), {"Gap function", "what softmax passes"});
  }

  TEST_CASE("most gradient passes far above σ = 1, and its place rises with n") {
    double before = 1;
    for (Index const n : {64, 512, 4096}) {
      double best = 0, at = 0;
      for (double sigma = 1; sigma < 12; sigma += 0.1)
        if (double const norm = softmax_of_normal_logits(sigma * sigma, {n}).front().frobenius_squared; norm > best)
          best = norm, at = sigma;
      CHECK(at > before + 1);
      before = at;
    }
    CHECK((before > 6 && before < 7));
  }

  TEST_CASE("settings that make no sense are refused") {
    test::Folder const folder;
    for (auto const& [keys, word] : {std::pair<std::string, std::string>{"keys: [64.5]", "keys: 64.5 is not an integer"},
                                     {"keys: []", "keys: is empty"},
                                     {"keys: [2]", "study.keys"},
                                     {"sigma: [0]", "study.sigma"},
                                     {"correlation: [1]", "study.correlation"},
                                     {"width: [2.5]", "width: 2.5 is not an integer"},
                                     {"scores: 5", "study.scores"}}) {
      test::put(folder / "s.yaml", "name: s\nstudy: {kind: softmax_length, " + keys + "}\n");
      test::refuses({"check", (folder / "s.yaml").string()}, 2, {"s.yaml:2:", word});
    }
  }
}
