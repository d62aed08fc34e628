// Exact expectations of a softmax by quadrature; the study of softmax by the number of keys: measurements beside them, at values that its
// file does not have.

#include "experiments/ablation/scaling/quadrature.hpp"
#include "experiments/folder/csv.hpp"
#include "tests/experiments/said.hpp"
#include "tests/json.hpp"

TEST_SUITE("softmax_length") {
  using namespace heed;

  namespace {

  std::filesystem::path study(test::Folder const& folder, std::string const& keys) {
    return test::trained(folder, "s", "seed: 5\nstudy: {kind: softmax_length, " + keys + "}\n");
  }

  void check_close(double found, double wanted, double tolerance) {
    CHECK_MESSAGE(std::abs(found - wanted) <= tolerance, found, " instead of ", wanted);
  }

  }  // namespace

  TEST_CASE("quadrature over normal logits gives the reference values") {
    struct Reference {
      double variance;
      Index keys;
      double trace, frobenius_squared, entropy, max_weight;
    };
    for (Reference const& r : {Reference{0.25, 2, 0.4492467360, 0.2054500682, 0.6399512953, 0.63112661},
                               {0.25, 64, 0.9800735878, 0.0193166444, 4.0366524309, 0.04558417},
                               {1, 10, 0.8053126063, 0.1212943102, 1.9235512892, 0.32026435},
                               {1, 256, 0.9896655357, 0.0099198370, 5.0521906191, 0.04302565},
                               {4, 4, 0.4255860440, 0.1212439043, 0.7710466164, 0.68586990},
                               {16, 32, 0.4817105198, 0.1005844374, 1.0796311704, 0.64337200},
                               {64, 10, 0.1895917934, 0.0550038731, 0.3440285694, 0.86613430},
                               {256, 2, 0.0351493177, 0.0117391774, 0.0577448804, 0.97562004},
                               {256, 256, 0.1760148324, 0.0495511185, 0.3272958200, 0.87564705}}) {
      INFO("variance ", r.variance, ", keys ", r.keys);
      auto const e = softmax_of_normal_logits(r.variance, {r.keys}).front();
      check_close(e.trace, r.trace, 1e-9);
      check_close(e.frobenius_squared, r.frobenius_squared, 1e-9);
      check_close(e.entropy, r.entropy, 1e-9);
      check_close(e.max_weight, r.max_weight, 1e-6);
    }
  }

  TEST_CASE("two keys: the largest weight is the mean of a sigmoid") {
    for (double const variance : {0.01, 1.0, 50.0}) {
      double expected = 0;
      for (double t = 0.0005; t < 10; t += 0.001)
        expected += 0.002 * std::exp(-t * t / 2) / std::sqrt(2 * M_PI) / (1 + std::exp(-std::sqrt(2 * variance) * t));
      check_close(softmax_of_normal_logits(variance, {2}).front().max_weight, expected, 1e-7);
    }
  }

  TEST_CASE("quadrature over Gaussian queries gives the reference values, and its derivative by the variance is half the trace") {
    std::vector<Index> const keys{10, 64};
    auto const raw = softmax_of_gaussian_products(64, 1, keys), scaled = softmax_of_gaussian_products(64, 0.125, keys);
    check_close(raw[0].softmax.trace, .19170651, 1e-8);
    check_close(raw[0].softmax.frobenius_squared, .05547352, 1e-8);
    check_close(raw[0].softmax.entropy, .34848445, 1e-8);
    check_close(raw[1].softmax.trace, .29138329, 1e-8);
    check_close(raw[1].softmax.frobenius_squared, .07348711, 1e-8);
    check_close(scaled[0].softmax.frobenius_squared, .12095306, 1e-8);
    check_close(scaled[1].softmax.entropy, 3.68570519, 1e-8);
    auto const log_sum = [](double variance) {
      auto const e = softmax_of_normal_logits(variance, {10}).front();
      return e.entropy + variance * e.trace;
    };
    check_close((log_sum(4.001) - log_sum(3.999)) / 0.002, softmax_of_normal_logits(4, {10}).front().trace / 2, 1e-6);
    // With few logits of small variance J is nearly constant, 1/n (I − 11ᵀ/n): ‖J z‖² is that of a centred vector over n².
    check_close(softmax_of_normal_logits(1e-6, {4}).front().along_logits, 1e-6 * 3 / 16, 1e-10);
  }

  TEST_CASE("the largest of standard normals") {
    check_close(expected_maximum(2), 0.5641895835, 1e-9);
    check_close(expected_maximum(10), 1.5387527308, 1e-9);
    check_close(expected_maximum(256), 2.8268632789, 1e-9);
  }

  TEST_CASE("every cell lies within five standard errors of its closed form, for other n, σ and ρ; the sphere has its exponents") {
    test::Folder const folder;
    auto const path =
        study(folder, "keys: [24, 200, 1500], sigma: [0.7, 2.6, 6], correlation: [0.4, 0.9], width: [3, 6], variants: [], scores: 1000000");
    auto const csv = parse_csv(test::get(path / "results.csv"));
    CHECK(csv.front() == CsvRows::value_type{"scores", "keys", "sigma", "correlation", "width", "quantity", "mean", "standard_error",
                                             "theory", "variant"});
    int compared = 0;
    std::map<std::string, std::vector<std::pair<double, double>>> gaps;
    for (auto const& line : csv_lines(csv, "results.csv")) {
      CAPTURE(line.location());
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
      CAPTURE(gap.first);
      auto const &few = gap.second.front(), &many = gap.second.back();
      double const exponent = std::log(many.second / few.second) / std::log(many.first / few.first);
      CHECK(exponent == doctest::Approx(2 / (std::stod(gap.first) - 1)).epsilon(0.15));
    }
    test::check_holds(test::get(path / "report.html"),
                      {"Gap function", "what softmax passes", "84 numbers beside", "the exact ‖J‖² is largest at 6"});
  }

  TEST_CASE_FIXTURE(test::InFolder, "the sphere alone: its limit has a condition, and nothing is compared with exact expectations") {
    auto const page =
        test::get(study(folder, "keys: [16, 32], sigma: [], correlation: [], width: [300], variants: [], scores: 10000") / "report.html");
    test::check_holds(page, {"if log n ≫ d"});
    CHECK(page.find("numbers beside") == page.npos);
  }

  /// What the variants make of the scores of a row that was trained with 6 keys; the keys' distances are their places.
  std::vector<double> plain_scores(std::string const& variant, std::vector<double> e) {
    auto const n = static_cast<double>(e.size()), trained = 6.0;
    for (std::size_t t = 0; t < e.size(); ++t) {
      double const a = std::sqrt(2 * (std::log(static_cast<double>(t) / 10 + 1) - 0.5 + 1));
      e[t] = variant == "scale_invariant" ? a * e[t] - a * a + 1
             : variant == "log_length"    ? e[t] * std::log(n) / std::log(trained)
             : variant == "yarn"          ? e[t] * std::pow(1 + 0.1 * std::log(n / trained), 2)
                                          : e[t];
    }
    return e;
  }

  /// Weights by their definitions, entmax by bisection.
  std::vector<double> plain_weights(std::string const& variant, std::vector<double> const& e) {
    auto const n = static_cast<double>(e.size());
    std::vector<double> p(e.size());
    auto const filled = [&](auto const& weight) {
      std::ranges::transform(e, p.begin(), weight);
      return std::accumulate(p.begin(), p.end(), 0.0);
    };
    if (variant == "sigmoid") return filled([&](double x) { return 1 / (1 + std::exp(std::log(n) - x)); }), p;
    if (variant == "entmax15") {
      double low = std::ranges::max(e) / 2 - 1, high = low + 1;
      for (int step = 0; step < 60; ++step) {
        double const tau = (low + high) / 2;
        (filled([&](double x) { return std::pow(std::max(x / 2 - tau, 0.0), 2); }) > 1 ? low : high) = tau;
      }
      return p;
    }
    double const total = filled([](double x) { return std::exp(x); }) + (variant == "softmax1" ? 1 : 0);
    for (double& each : p) each /= total;
    return p;
  }

  TEST_CASE_FIXTURE(test::InFolder, "variants: Jacobians of plain definitions by finite differences") {
    std::mt19937_64 random(3);
    std::normal_distribution<double> normal(0, 3);
    auto const csv = parse_csv(
        test::get(study(folder, "keys: [6, 9], sigma: [3], correlation: [], width: [], variants_at: 3, scores: 200000") / "results.csv"));
    std::map<std::string, std::map<std::string, std::vector<double>>> measured;  // by variant and quantity
    for (std::string const variant : {"softmax", "log_length", "yarn", "scale_invariant", "softmax1", "sigmoid", "entmax15"})
      for (int row = 0; row < 2000; ++row) {
        std::vector<double> e(9);
        for (double& x : e) x = normal(random);
        e = plain_scores(variant, e);
        auto const p = plain_weights(variant, e);
        double trace = 0, squares = 0, entropy = 0;
        for (std::size_t j = 0; j < 9; ++j) {
          auto up = e, down = e;
          up[j] += 1e-5, down[j] -= 1e-5;
          auto const above = plain_weights(variant, up), below = plain_weights(variant, down);
          for (std::size_t i = 0; i < 9; ++i) squares += std::pow((above[i] - below[i]) / 2e-5, 2);
          trace += (above[j] - below[j]) / 2e-5;
          if (p[j] > 0) entropy -= p[j] * std::log(p[j]);
        }
        auto& of = measured[variant];
        of["trace_jacobian"].push_back(trace), of["jacobian_norm_squared"].push_back(squares), of["entropy"].push_back(entropy);
        of["max_weight"].push_back(std::ranges::max(p));
      }
    int compared = 0;
    for (auto const& line : csv_lines(csv, "results.csv")) {
      if (line["keys"] != "9" || line["quantity"] == "gap_function") continue;
      double mean = 0, squares = 0;
      for (double const x : measured.at(line["variant"]).at(line["quantity"])) mean += x / 2000, squares += x * x / 2000;
      double const error = std::hypot(std::sqrt((squares - mean * mean) / 2000), line.number("standard_error"));
      CAPTURE(line.location());
      CHECK(std::abs(mean - line.number("mean")) < 5 * error);
      ++compared;
    }
    CHECK(compared == 7 * 4);
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

  TEST_CASE_FIXTURE(test::InFolder, "the heads of a trained run stand beside the closed forms") {
    test::trained(folder, "r",
                  "data: {kind: copy, length: 16, vocabulary: 8, validation: 32}\n"
                  "model: {kind: gpt, layers: 1, heads: 2, width: 16, context: 40}\ntrain: {steps: 2, batch: 4}\n");
    auto const path = study(folder, "run: r, keys: [16], sigma: [1], correlation: [], width: [], variants: [], scores: 10000");
    std::size_t heads = 0;
    auto const csv = parse_csv(test::get(path / "results.csv"));
    for (auto const& line : csv_lines(csv, "results.csv")) {
      if (!line["scores"].starts_with("trained layer0.head") || line["quantity"] != "entropy") continue;
      // Scores are small at the start, so that the rows, of n − 15 to n keys, are nearly uniform.
      double const n = line.number("keys"), sigma = line.number("sigma"), entropy = line.number("mean");
      CHECK((entropy < std::log(n) && entropy > std::log(n - 15) - sigma * sigma));
      ++heads;
    }
    CHECK(heads == 2);
    test::check_holds(test::get(path / "report.html"), {"trained heads"});
  }

  TEST_CASE_FIXTURE(test::InFolder, "settings that make no sense are refused") {
    for (auto const& [keys, word] : {std::pair<std::string, std::string>{"keys: [64.5]", "keys: 64.5 is not an integer"},
                                     {"keys: []", "keys: is empty"},
                                     {"keys: [2]", "study.keys"},
                                     {"sigma: [0]", "study.sigma"},
                                     {"correlation: [1]", "study.correlation"},
                                     {"width: [2.5]", "width: 2.5 is not an integer"},
                                     {"scores: 5", "study.scores"},
                                     {"variants: [ssmax]", "study.variants"},
                                     {"variants_at: 0", "study.variants_at"}}) {
      test::put(folder / "s.yaml", "name: s\nstudy: {kind: softmax_length, " + keys + "}\n");
      test::refuses({"check", (folder / "s.yaml").string()}, 2, {"s.yaml:2:", word});
    }
  }
}
