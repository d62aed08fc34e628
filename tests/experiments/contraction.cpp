// The study of contraction: its closed form beside weights and products that are computed one by one, and published values.

#include "experiments/folder/csv.hpp"
#include "tests/experiments/said.hpp"

TEST_SUITE("contraction") {
  using namespace heed;
  using doctest::Approx;

  namespace {

  /// The mean inner product after a layer over n tokens with products ρ, scores β⟨x, y⟩: sums over all pairs.
  double by_sums(double rho, double beta, Index n) {
    auto const product = [&](Index i, Index j) { return i == j ? 1 : rho; };
    auto const weight = [&](Index i, Index j) {
      return std::exp(beta * product(i, j)) / (std::exp(beta) + static_cast<double>(n - 1) * std::exp(beta * rho));
    };
    auto const after = [&](Index i, Index j) {
      double sum = 0;
      for (Index k = 0; k < n; ++k)
        for (Index l = 0; l < n; ++l) sum += weight(i, k) * weight(j, l) * product(k, l);
      return sum;
    };
    return after(0, 1) / after(0, 0);
  }

  CsvRows results_of(std::string const& keys) {
    test::Folder const folder;
    auto const study = test::trained(folder, "c", "seed: 7\nstudy: {kind: contraction, " + keys + "}\n");
    test::check_holds(test::get(study / "report.html"), {"after one layer", "goes as (log n)^", "(standard error), n = "});
    return parse_csv(test::get(study / "results.csv"));
  }

  }  // namespace

  TEST_CASE("wide tokens follow the closed form, which sums of all pairs confirm; the scale of selection grows as log n") {
    auto const rows = results_of("keys: [16, 64], width: [4096], correlation: [0.5], sharpness: [0.5, 1, 2], draws: 4");
    std::map<double, double> critical;
    for (auto const& line : csv_lines(rows, "results.csv")) {
      double const n = line.number("keys"), mean = line.number("mean");
      if (line["scores"] == "normal") continue;
      if (line["quantity"] == "critical_factor") {
        critical[n] = mean;
        continue;
      }
      double const beta = line.number("sharpness") * std::log(n) / 0.5;
      CHECK(line.number("theory") == Approx(by_sums(0.5, beta, line.number<Index>("keys"))).epsilon(0.02));
      CHECK(mean == Approx(line.number("theory")).epsilon(0.02));
    }
    for (auto const& [n, beta] : critical) CHECK(beta == Approx(std::log(n - 1) / 0.5).epsilon(0.05));  // e^(β(1 − ρ)) = n − 1
    CHECK(critical.size() == 2);
  }

  TEST_CASE("the values of 4,096 tokens at ρ = ¼ below, at and above the critical point") {
    auto const rows = results_of("keys: [64, 4096], width: [512], correlation: [0.25], sharpness: [0.8, 1, 1.2], draws: 2, queries: 8");
    std::map<double, double> const published{{0.8, 0.930}, {1, 0.572}, {1.2, 0.321}};
    for (auto const& line : csv_lines(rows, "results.csv"))
      if (line["quantity"] == "inner_product" && line["keys"] == "4096")
        CHECK(line.number("theory") == Approx(published.at(line.number("sharpness"))).epsilon(0.05));
  }

  TEST_CASE_FIXTURE(test::InFolder, "settings that make no sense are refused") {
    for (auto const& [keys, word] : {std::pair<std::string, std::string>{"keys: [4.5]", "keys: 4.5 is not an integer"},
                                     {"keys: []", "keys: is empty"},
                                     {"width: [1]", "study.width"},
                                     {"correlation: [1]", "study.correlation"},
                                     {"sharpness: [0]", "study.sharpness"},
                                     {"draws: 1", "study.draws"}}) {
      test::put(folder / "c.yaml", "name: c\nstudy: {kind: contraction, " + keys + "}\n");
      test::refuses({"check", (folder / "c.yaml").string()}, 2, {"c.yaml:2:", word});
    }
  }
}
