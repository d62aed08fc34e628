#include "experiments/study/study.hpp"

#include "autograd/graph.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/product.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/ops/softmax.hpp"
#include "experiments/ablation/scaling/quadrature.hpp"
#include "experiments/report/gnuplot.hpp"
#include "experiments/study/samples.hpp"
#include "experiments/study/softmax_scaling.hpp"
#include "tests/engine.hpp"
#include "tests/experiments/said.hpp"
#include "tests/json.hpp"
#include "tests/markdown.hpp"

TEST_SUITE("study") {
  using namespace heed;

  namespace {

  void check_close(double found, double wanted, double tolerance) {
    CHECK_MESSAGE(std::abs(found - wanted) <= tolerance, found, " instead of ", wanted);
  }

  CsvRows read_csv(std::filesystem::path const& file) { return parse_csv(test::get(file)); }

  /// The rows of all cells of softmax_scaling, and the cells in them.
  CsvRows measured_rows(SoftmaxScalingSettings const& settings, StudyContext const& context = {}) {
    Study const study = softmax_scaling(settings, context);
    CsvRows rows;
    for (auto const& cell : study.cells) std::ranges::copy(cell.measure(), std::back_inserter(rows));
    return rows;
  }
  std::vector<ScalingCell> measure_grid(SoftmaxScalingSettings const& settings, StudyContext const& context = {}) {
    return cells_of(report(settings, measured_rows(settings, context)).csv, "results.csv");
  }

  /// A grid without the study of layers.
  SoftmaxScalingSettings grid(std::vector<double> const& d_k, std::vector<double> const& keys, double precision) {
    SoftmaxScalingSettings settings;
    settings.d_k = d_k;
    settings.keys = keys;
    settings.precision = precision;
    settings.layers = 0;
    return settings;
  }

  /// The arguments to run a study in a folder, with assignments.
  std::vector<std::string> command(test::Folder const& folder, std::string const& text, std::vector<std::string> const& more = {}) {
    test::put(folder / "study.yaml", text);
    return test::joined({"run", folder / "study.yaml", "--output", folder / "runs"}, more);
  }

  }  // namespace

  TEST_CASE("the measured Jacobian is the one that the engine differentiates") {
    Index const n = 5, queries = 32;
    std::vector<float> logits(static_cast<std::size_t>(n * queries));
    draw(Law::gaussian, Stream(1, "logits"), logits);
    for (double const factor : {0.1, 1.0, 20.0}) {
      Saturation found;
      measure_saturation(logits.data(), n, queries, queries, factor, false, found);
      for (Index i = 0; i < queries; ++i) {
        std::vector<double> row;
        for (Index j = 0; j < n; ++j) row.push_back(factor * static_cast<double>(heed::at(logits, j * queries + i)));
        Tensor const z = Tensor::of(row, {n});
        Tensor const jacobi = jacobian([](Tensor const& x) { return softmax(x); }, z);
        double trace = 0, squared = 0, entropy = 0, largest = 0;
        for (double const p : softmax(z).to_vector()) entropy -= p * std::log(p), largest = std::max(largest, p);
        for (Index k = 0; k < n * n; ++k) trace += k % (n + 1) == 0 ? jacobi.at(k) : 0, squared += jacobi.at(k) * jacobi.at(k);
        auto const at = static_cast<std::size_t>(i);
        CHECK(found.trace[at] == doctest::Approx(trace).epsilon(1e-5));
        CHECK(found.frobenius_squared[at] == doctest::Approx(squared).epsilon(2e-5));
        CHECK(found.entropy[at] == doctest::Approx(entropy).epsilon(1e-5));
        CHECK(found.max_weight[at] == doctest::Approx(largest).epsilon(1e-6));
      }
    }
  }

  TEST_CASE("nothing cancels where one weight is nearly 1, and ties are counted") {
    std::vector<float> logits(48, 0.0F);
    std::fill(logits.begin(), logits.begin() + 16, 50.0F);  // 50, 0, 0 for every query
    Saturation found;
    measure_saturation(logits.data(), 3, 16, 16, 1, false, found);
    double const small = std::exp(-50.0);
    // A relative error, however small the number: Approx's own scale of 1 would take anything.
    CHECK(found.trace[3] / (4 * small) == doctest::Approx(1).epsilon(1e-12));
    CHECK(found.frobenius_squared[3] / (10 * small * small) == doctest::Approx(1).epsilon(1e-12));
    CHECK(found.entropy[3] / (2 * small * 51) == doctest::Approx(1).epsilon(1e-12));
    std::fill(logits.begin(), logits.end(), 7.0F);
    measure_saturation(logits.data(), 3, 16, 16, 1, false, found);
    CHECK(found.trace[15] == doctest::Approx(2.0 / 3));
    CHECK(found.frobenius_squared[15] == doctest::Approx(2.0 / 9));
    CHECK(found.max_weight[15] == doctest::Approx(1.0 / 3));
    CHECK(found.entropy[15] == doctest::Approx(std::log(3.0)));
  }

  TEST_CASE("components have mean 0, variance 1 and their law's kurtosis") {
    std::vector<float> x(1 << 18);
    for (auto const& [law, kurtosis] : {std::pair{Law::gaussian, 3.0}, {Law::uniform, 1.8}, {Law::rademacher, 1.0}}) {
      draw(law, Stream(2, "components"), x);
      double mean = 0, second = 0, fourth = 0, pairs = 0;
      auto const count = static_cast<double>(x.size());
      for (std::size_t i = 0; i < x.size(); ++i) {
        double const value = static_cast<double>(x[i]), square = value * value;
        mean += value / count;
        second += square / count;
        fourth += square * square / count;
        if (i % 32 < 16) pairs += square * static_cast<double>(x[i + 16] * x[i + 16]) / (count / 2);  // made of the same two words
      }
      check_close(mean, 0, 0.01);
      check_close(second, 1, 0.015);
      check_close(fourth, kurtosis, 0.1);
      check_close(pairs, 1, 0.02);
    }
  }

  TEST_CASE("a grid agrees with theory within its standard errors, which are as small as asked for") {
    auto const cells = measure_grid(grid({1, 4, 16}, {2, 10, 32}, 0.05));
    REQUIRE(cells.size() == 4 * 3 * 3 * 3);
    std::map<std::string, std::pair<double, double>> squares;
    for (auto const& cell : cells) {
      for (std::size_t q = 0; q < quantities; ++q) {
        auto const& value = cell.values[q];
        auto const quantity = static_cast<Quantity>(q);
        bool const gradient = is_gradient(quantity) || (quantity >= Quantity::query_gradient_1 && quantity <= Quantity::query_gradient_top);
        bool const lattice = quantity == Quantity::frobenius_median && cell.distribution == "rademacher";
        if (!lattice && quantity != Quantity::query_weights_gradient)
          CHECK(value.has_value() == !(gradient && cell.distribution == "logits"));
        if (!value || describes_spread(quantity)) continue;
        INFO(cell.distribution, ", scale ", cell.scale, ", d_k ", cell.d_k, ", keys ", cell.keys, ", ", name(quantity));
        CHECK(value->standard_error <= 0.05 * std::abs(value->mean));
        if (!value->theory) continue;
        if (value->standard_error <= 1e-7 * value->mean) {  // it does not vary
          check_close(value->mean, *value->theory, 1e-6);
          continue;
        }
        double const z = (value->mean - *value->theory) / value->standard_error;
        CHECK(std::abs(z) < 5);
        auto& [sum, count] = squares[cell.distribution];
        sum += z * z;
        ++count;
      }
    }
    for (auto const& each : squares) {
      CAPTURE(each.first);
      CHECK(each.second.first / each.second.second > 0.5);
      CHECK(each.second.first / each.second.second < 1.8);
    }
  }

  TEST_CASE("two keys: quantiles of ‖J‖ are those of the gap; of more keys the median comes to 2 exp(−σ gap)") {
    check_close(gap_quantile(2, 0.5), std::sqrt(2.0) * 0.6744897502, 1e-6);
    auto settings = grid({16, 1024}, {2, 10}, 0.03);
    settings.scale = {"none"};
    settings.distribution = {"logits"};
    for (auto const& cell : measure_grid(settings)) {
      INFO("d_k ", cell.d_k, ", keys ", cell.keys);
      double const deviation = std::sqrt(static_cast<double>(cell.d_k));
      for (auto const& quantile : {std::pair{Quantity::frobenius_1, 0.01},
                                   {Quantity::frobenius_10, 0.1},
                                   {Quantity::frobenius_median, 0.5},
                                   {Quantity::frobenius_90, 0.9},
                                   {Quantity::frobenius_99, 0.99}}) {
        auto const& value = *cell.get(quantile.first);
        double const gap = deviation * gap_quantile(cell.keys, 1 - quantile.second);
        // With ten keys the third counts too, unless the two largest are far apart.
        if (cell.keys > 2 && (quantile.first != Quantity::frobenius_median || cell.d_k < 1024)) continue;
        double const exact = cell.keys == 2 ? 1 / (1 + std::cosh(gap)) : 2 * std::exp(-gap);
        if (exact < 1e-30) continue;  // no float
        INFO("quantile ", quantile.second, ", measured ", value.mean, " ± ", value.standard_error, ", exact ", exact);
        CHECK(std::abs(value.mean - exact) < 5 * value.standard_error + 1e-6 * exact);
      }
      double const top = cell.get(Quantity::frobenius_top)->mean;
      CHECK(top > 0.01);
      CHECK(top < 1);
    }
  }

  TEST_CASE("scales by a power lie between those that have names, with their theory; a quick look takes some of the grid") {
    auto settings = grid({4, 16}, {4}, 0.1);
    settings.scale = {"rsqrt"};
    settings.power = {0.5, 0.25};
    settings.distribution = {"gaussian"};
    auto const cells = measure_grid(settings);
    REQUIRE(cells.size() == 6);
    CHECK(cells[1].scale == "power 0.5");
    CHECK(cells[2].scale == "power 0.25");
    for (std::size_t i : {0UL, 3UL}) {
      CHECK(cells[i].get(Quantity::trace)->mean == cells[i + 1].get(Quantity::trace)->mean);
      auto const& between = *cells[i + 2].get(Quantity::trace);
      check_close(between.mean, *between.theory, 5 * between.standard_error);
      CHECK(between.mean < cells[i].get(Quantity::trace)->mean);
    }
    SoftmaxScalingSettings whole;
    CHECK(whole.looked_at().d_k == whole.d_k);
    whole.quick = true;
    auto const few = whole.looked_at();
    CHECK(few.d_k == std::vector<double>{1, 4, 16, 64, 256, 1024});
    CHECK(few.keys == std::vector<double>{2, 10, 64});
    CHECK(few.distribution == std::vector<std::string>{"gaussian"});
    CHECK(few.precision == 0.05);
  }

  TEST_CASE("the number of threads does not change a bit") {
    auto settings = grid({8}, {4}, 0.05);
    settings.layers = 2;
    auto const rows = [&](int count) {
      Threads const some(count);
      return measured_rows(settings);
    };
    CHECK(rows(3) == rows(1));
  }

  TEST_CASE_FIXTURE(test::InFolder, "a trained run's heads: the rows that each query may see, by the engine's own softmax") {
    test::trained(
        folder, "tiny",
        "data: {kind: grammar}\ninit: {std: 0.4}\nmodel: {kind: gpt, layers: 2, heads: 2, width: 8, context: 40, position: rotary}"
        "\ntrain: {steps: 1, batch: 2, evaluate: {batches: 1}}\n");
    auto settings = grid({4}, {3, 200}, 0.01);
    settings.distribution = {};
    settings.scale = {"none"};
    settings.run = "tiny";
    settings.sequences = 5;
    StudyContext context;
    context.folders.output = folder.path();
    auto const cells = measure_grid(settings, context);
    REQUIRE(cells.size() == 4);  // layers × heads: of 200 keys there are no rows
    ReadFiles read;
    auto const heads = trained_heads("tiny", 5, context, read);
    CHECK(read.at("run").file.ends_with("checkpoint.safetensors"));
    REQUIRE(heads.size() == 4);
    auto const& head = heads[3];
    CHECK(head.name == "layer1.head1");
    CHECK(head.causal);
    REQUIRE(head.sequences.size() == 5);
    auto const shape = head.shape(3);
    double trace = 0, gradient = 0, rows = 0;
    auto const matrix = [](float const* x, auto n, Index d) { return Tensor::of(std::vector<double>(x, x + n * d), {n, d}); };
    for (auto const& sequence : head.sequences) {
      for (Index first = 0; first + 3 <= 40; first += 3) {
        Tensor const keys = matrix(sequence.keys.data() + first * 4, 3, 4);
        for (Index i = shape.first_query(first); i < shape.queries; ++i, ++rows) {
          CHECK(*shape.first_position + i >= first + 2);
          Tensor q = matrix(sequence.queries.data() + i * 4, 1, 4);
          Tensor const by_query = jacobian([&](Tensor const& x) { return softmax(matmul(x, keys, false, true)); }, q.set_requires_grad());
          for (double const x : by_query.to_vector()) gradient += x * x;
          trace += 1 - sum(pow(softmax(matmul(q, keys, false, true)), 2)).item();
        }
      }
    }
    CHECK(rows == 5 * shape.rows());
    CHECK(cells.back().get(Quantity::trace)->mean == doctest::Approx(trace / rows).epsilon(1e-6));
    CHECK(cells.back().get(Quantity::query_gradient_squared)->mean == doctest::Approx(gradient / rows).epsilon(1e-4));
    // That there is no such run is told before anything is measured.
    settings.run = "nowhere";
    CHECK_THROWS_AS(softmax_scaling(settings, context), ConfigError);
  }

  TEST_CASE_FIXTURE(test::InFolder, "a study leaves its folder: configuration, results.csv, summaries; and is not made twice") {
    std::string const text =
        "name: small\nstudy: {kind: softmax_scaling, d_k: [64, 128, 256], keys: [4], scale: [none], "
        "distribution: [logits, uniform], precision: 0.2, layers: 2}\n";
    CHECK(test::run_well(command(folder, text)).output.find("logits, 4 keys") != std::string::npos);
    auto const path = folder / "runs/small";
    auto const rows = read_csv(path / "results.csv");
    CHECK(rows.front() == std::vector<std::string>{"distribution", "scale", "d_k", "keys", "quantity", "mean", "standard_error", "theory"});
    CHECK(rows.size() == 1 + 3 * (12 + 20) + 3 * 2 * 2);  // and layers: d_k, places of the norms, layers
    for (auto const& row : rows) CHECK(row.size() == 8);
    CHECK(test::get(path / "summary.md").find("| logits | none | 4 | trace |") != std::string::npos);
    auto const summary = test::summary_of(path);
    CHECK(summary["finished"] == true);
    CHECK(summary["figures"]["slope.logits.none.4.trace"].get<double>() == doctest::Approx(-0.5).epsilon(0.2));
    CHECK(test::get(path / "config.yaml").find("keys: [4.0]") != std::string::npos);

    CHECK(test::run_well(command(folder, text)).output.find("finished already") != std::string::npos);
    test::refuses(command(folder, text, {"seed=2"}), 2, {"what differs: seed"});
    CHECK(test::run_well(command(folder, text, {"seed=2", "--fresh", "--quiet"})).output.empty());
    CHECK(read_csv(path / "results.csv") != rows);
    CHECK(std::filesystem::exists(folder / "runs/small.old-1/results.csv"));
  }

  // Of every Markdown table on the way: whether it has as many cells in a row as headings.
  TEST_CASE("a study has a page of its own; heed report makes it again, beside runs and ablations, and says what a folder lacks") {
    test::Folder const folder;
    auto const runs = (folder / "runs").string();
    test::run_well(command(folder, "name: small\nstudy: {kind: softmax_scaling, d_k: [64, 128, 256], keys: [4, 10], precision: 0.3}\n"));
    CHECK(test::check_markdown_tables(test::get(folder / "runs/small/summary.md")) >= 8);
    test::run_well(command(folder, "study: worked_example\n"));
    CHECK(test::check_markdown_tables(test::get(folder / "runs/worked_example/summary.md")) > 20);
    for (char const* const topic : {"attention", "ablation"})
      CHECK(test::check_markdown_tables(test::run_well({"list", topic, "--markdown"}).output) > 0);
    test::put(folder / "gpt.yaml",
              "name: tiny\ndata: {kind: grammar}\nmodel: {kind: gpt, layers: 1, heads: 1, width: 8, context: 32}\ntrain: {steps: 2, batch: "
              "2, evaluate: {batches: 1}}\n");
    test::run_well({"run", folder / "gpt.yaml", "--output", runs, "--quiet"});
    for (char const* const name : {"small", "worked_example"}) {
      auto const path = folder / "runs" / name / "report.html";
      auto const html = test::get(path);
      CHECK(html.find("<p class=\"note\">Study</p>") != std::string::npos);
      for (char const* const outside : {"src=\"http", "href=\"http", "url(http"}) CHECK(html.find(outside) == std::string::npos);
      std::filesystem::remove(path);
    }
    test::run_well({"report", "small", "tiny", "worked_example", "--output", runs});
    CHECK(std::filesystem::exists(folder / "runs/small/report.html"));
    test::check_holds(test::get(folder / "runs/report.html"), {">small<", ">tiny<", ">worked_example<", "part3"});
    test::check_holds(test::get(folder / "runs/small/report.html"),
                      {"Softmax saturates", "exact, same d_k", "Agreement with theory", "times that limit", "How ‖∂p/∂q‖ is spread",
                       "Through layers, before training"});
    test::check_holds(test::get(folder / "runs/worked_example/report.html"),
                      {"1·2 + 0·3 + 2·1 = 4", "class=\"matrix\"", "Causal", "∂L/∂S"});
    if (draw({})) CHECK(std::filesystem::exists(folder / "runs/small/figures/fans_gaussian_10.pdf"));
    auto const results = folder / "runs/small/results.csv";
    test::unseal(results.parent_path());
    for (char const* const line : {"gaussian,none,64,10,trace,x,0.1,\n", "gaussian,none,64,10,tracy,1,0.1,\n", "gaussian,none\n"}) {
      test::put(results, std::string("distribution,scale,d_k,keys,quantity,mean,standard_error,theory\n") + line);
      test::refuses({"report", "small", "--output", runs}, 3, {"results.csv: line 2"});
    }
    std::filesystem::remove(folder / "runs/small/summary.json");
    std::filesystem::remove(folder / "runs/report.html");
    test::put(folder / "heads.yaml",
              "ablation: heads\nbase: gpt.yaml\nvary: {model.heads: [1, 2], model.position: [learned, rotary]}\nseeds: 2\nmetric: "
              "validation.loss\n");
    test::run_well({"run", folder / "heads.yaml", "--output", runs, "--quiet"});
    CHECK(test::check_markdown_tables(test::get(folder / "runs/heads/summary.md")) > 0);
    // A folder of a run, an ablation and studies, one of which has not finished.
    test::check_holds(test::run_well({"report", runs}).errors, {"left out, because they have not finished: small"});
    auto const page = test::get(folder / "runs/report.html");
    test::check_holds(page, {">heads<", ">tiny<", ">worked_example<", "part3"});
    CHECK(page.find("part4") == std::string::npos);
    std::filesystem::create_directories(folder / "empty/nothing");
    test::refuses({"report", (folder / "empty").string()}, 3, {"empty: there are no results in it", "summary.json"});
    std::filesystem::create_directories(folder / "begun/one");
    test::put(folder / "begun/one/config.yaml", "name: one\n");
    test::refuses({"report", (folder / "begun").string()}, 3, {"not finished: one"});
    test::refuses({"report", "small", "--output", runs}, 3, {"small/summary.json", "it is written when", "has finished"});
    std::filesystem::remove(folder / "runs/worked_example/results.csv");
    test::refuses({"report", "worked_example", "--output", runs}, 3, {"results.csv"});
  }

  TEST_CASE_FIXTURE(test::InFolder, "the worked example's numbers") {
    test::run_well(command(folder, "study: worked_example\n"));
    std::map<std::string, double> found;
    for (auto const& row : read_csv(folder / "runs/worked_example/results.csv"))
      if (row[0] != "variant") found[row[0] + " " + row[1] + row[2] + row[3]] = std::stod(row[4]);
    using Cells = std::map<std::string, double>;
    Cells const exact{{" K22", 4}, {" Q33", 3}, {" V22", 8}, {" S22", 16}, {"causal O13", 3}};
    Cells const rounded{{"unscaled P11", 0.06337893833303762},  {"unscaled O32", 7.759892254657784},
                        {"scaled P31", 0.0074448923770739665},  {"scaled O12", 6.319371012215333},
                        {"causal O23", 1.8432523806644153e-05}, {"unscaled dV21", 2.3308552975042596},
                        {"unscaled dS13", 0.3677198745615737},  {"unscaled dx23", 9.201891227733629}};
    for (auto const& [cell, wanted] : exact) check_close(found.at(cell), wanted, 0);
    for (auto const& [cell, wanted] : rounded) check_close(found.at(cell), wanted, 1e-12);
    test::run_well(command(folder, "name: changed\nstudy: {kind: worked_example, x: [[2, 0, 1, 0], [0, 2, 0, 2]]}\n"));
    CHECK(read_csv(folder / "runs/changed/results.csv").size() > 1);
  }

  TEST_CASE("normalisers: softmax agrees with quadrature, what has zeros loses rows, and what loses none has one sentence") {
    test::Folder const folder;
    test::run_well(command(folder, "study: {kind: normalisers, d_k: [1, 64], keys: 4, samples: 1000}\n"));
    auto const path = folder / "runs/normalisers";
    std::map<std::string, std::pair<double, double>> found;
    for (auto const& row : read_csv(path / "results.csv"))
      if (row[0] != "align") found[row[0] + " " + row[1] + " " + row[2] + " " + row[4]] = {std::stod(row[5]), std::stod(row[6])};
    for (int const d : {1, 64}) {
      auto const exact = softmax_of_normal_logits(d, {4}).front();
      auto const [trace, trace_error] = found.at(fmt::format("softmax none {} trace", d));
      auto const [squared, squared_error] = found.at(fmt::format("softmax none {} frobenius_squared", d));
      check_close(trace, exact.trace, 5 * trace_error);
      check_close(squared, exact.frobenius_squared, 5 * squared_error);
    }
    // A row of sparsemax with k weights above 0 has tr J = k − 1.
    auto const [zeros, unused] = found.at("sparsemax none 64 zeros");
    CHECK(found.at("sparsemax none 64 trace").first == doctest::Approx(4 * (1 - zeros) - 1).epsilon(1e-9));
    CHECK(found.contains("entmax15 rsqrt 64 trace"));
    CHECK(found.contains("sigmoid rsqrt 64 trace"));
    CHECK(!found.contains("local_m none 64 trace"));
    test::check_markdown_tables(test::get(path / "summary.md"));
    test::check_holds(test::get(path / "report.html"), {"Gradients through normalisers", "the Jacobian is exactly 0 for no query"});
  }

  TEST_CASE_FIXTURE(test::InFolder, "what a study cannot mean is refused with its place") {
    auto const refused = [&](std::string const& text, std::string const& message) {
      CAPTURE(text);
      test::refuses(command(folder, text), 2, {message});
    };
    refused("study: softmax_scalin\n", "study.yaml:1:8: 'study' wants one of");
    refused("study:\n  kind: softmax_scaling\n  dk: [1]\n", "study.yaml:3:3: unknown key 'study.dk'; did you mean 'd_k'?");
    refused("study: {kind: softmax_scaling, d_k: [1.5]}\n", "study.yaml:1:37: study.d_k: 1.5 is not an integer");
    refused("study: {kind: softmax_scaling, keys: [1]}\n", "'study.keys[0]' wants a number ≥ 2 and ≤ 4096");
    refused("study: {kind: softmax_scaling, scale: [sqrt]}\n", "did you mean 'rsqrt'?");
    refused("study: {kind: softmax_scaling, distribution: []}\n", "study.distribution: is empty");
    refused("study: {kind: worked_example, x: [[1, 0], [2, a]]}\n",
            "study.yaml:1:47: 'study.x[1][1]' wants rows of numbers, [[1, 2], [3, 4]]");
    refused("study: {kind: worked_example, x: [[1, 0], [2]]}\n", "study.x: row 2 has 1 numbers, row 1 has 2");
    refused("study: {kind: worked_example, x: [[1, 0]]}\n", "study.key: has 4 rows, but the rows of x have 2 numbers");
    refused("study: worked_example\nmodel: {kind: gpt}\n", "study.yaml:2:1: unknown key 'model'");
    refused("study: worked_example\nname: ../elsewhere\n", "is not the name of a folder");
  }
}
