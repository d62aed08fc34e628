#include "experiments/bench/bench.hpp"

#include "autograd/blas/products.hpp"
#include "autograd/error.hpp"
#include "experiments/config/config.hpp"
#include "nn/attention/steps.hpp"
#include "nn/position.hpp"
#include "tests/json.hpp"
#include "tests/rooms.hpp"

TEST_SUITE("bench") {
  using namespace heed;
  using test::Json;

  namespace {

  BenchOptions small(std::string const& what = "attention", std::string const& size = "1x2x5x4", std::vector<std::string> names = {}) {
    BenchOptions options;
    options.what = what;
    options.size = size;
    options.names = std::move(names);
    options.seconds = 0;
    return options;
  }

  std::string page(BenchOptions const& options) {
    std::ostringstream out;
    Exit const code = bench(options, out);
    CHECK(code == Exit::done);
    return out.str();
  }

  std::vector<Json> rows(BenchOptions options) {
    options.json = true;
    return mapped(test::lines_of(page(options)), [](std::string const& line) { return Json::parse(line); });
  }

  void refuses(BenchOptions const& options, std::string const& message) {
    CHECK_THROWS_WITH_AS(page(options), doctest::Contains(message.c_str()), ConfigError);
  }

  }  // namespace

  TEST_CASE("every score with every align, every read and every position is measured, forward and with gradients") {
    auto const all = rows(small());
    auto const pairs = Registry<ScoreKind>::all().size() * Registry<AlignKind>::all().size();
    CHECK(all.size() == 2 * (pairs + (Registry<ReadKind>::all().size() - 1) + (Registry<PositionKind>::all().size() - 1)));
    for (auto const& row : all) {
      CAPTURE(row.dump());
      CHECK(row.at("size") == "1x2x5x4");
      CHECK(row.at("threads") >= 1);
      CHECK(0 < row.at("min_ms"));
      CHECK(row.at("min_ms") <= row.at("median_ms"));
      CHECK(row.at("median_ms") <= row.at("max_ms"));
      CHECK(row.at("repetitions") >= 3);
      CHECK(row.at("peak_mb") > 0);
    }
  }

  TEST_CASE("names choose rows; scaled dot stays, to compare with") {
    auto options = small("attention", "1x2x5x4", {"t5", "local_p"});
    options.causal = true;
    options.sees = 3;
    options.dropout = 0.25;
    auto const chosen = rows(options);
    CHECK(chosen.size() == 2 * (1 + Registry<ScoreKind>::all().size() + 1));
    CHECK(chosen.front().at("score") == "scaled_dot");
    CHECK(chosen.back().at("position") == "t5");
    for (auto const& row : chosen) {
      CHECK(row.at("causal") == true);
      CHECK(row.at("sees") == 3);
      CHECK(row.at("dropout") == 0.25);
    }
    auto const table = page(options);
    CHECK(table.find("1x2x5x4, causal, sees 3, dropout 0.25") != std::string::npos);
    CHECK(table.find("local_p") != std::string::npos);
    CHECK(table.find("sparsemax") == std::string::npos);
  }

  TEST_CASE("what does not exist is refused with the nearest") {
    refuses(small("attention", "1x2x5x4", {"aditive"}), "there is no 'aditive'; did you mean 'additive'?");
    for (auto const* size : {"1x2x5", "1x2x5x4x3", "axb", "0x1x1x1", "1x2x5x4 ", "1x-2x5x4"})
      refuses(small("attention", size), "--size: wants");
    refuses(small("atention"), "did you mean 'attention'?");
  }

  TEST_CASE("a measurement counts the pool's memory beyond what was held before") {
    Tensor const before = Tensor::zeros({1000}, DType::float64);
    int calls = 0;
    auto const work = [&] {
      ++calls;
      Tensor::zeros({500}, DType::float64);
    };
    auto const result = measure_time(work, 0);
    CHECK(result.peak_bytes >= 4000);
    CHECK(result.peak_bytes < 8000);
    CHECK(calls == result.repetitions + 1);
  }

  TEST_CASE("gpt: every work of a size, with its share of the machine's peak") {
    auto options = small("gpt", "tiny");
    auto const all = rows(options);
    REQUIRE(all.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
      auto const& row = all[i];
      CAPTURE(row.dump());
      CHECK(row.at("what") == std::vector<std::string>{"train", "forward", "sample"}[i]);
      CHECK(row.at("size") == "tiny");
      CHECK(row.at("precision") == "float32");
      CHECK(row.at("min_ms") <= row.at("median_ms"));
      CHECK(row.at("median_ms") <= row.at("max_ms"));
      double const tokens = i == 2 ? 31 : 16 * 32;
      CHECK(row.at("tokens_per_second").get<double>() == doctest::Approx(1e3 * tokens / row.at("median_ms").get<double>()));
      CHECK(row.at("gflop") > 0);
      CHECK(row.at("share_of_peak") > 0);
      CHECK(row.at("share_of_peak") < 1.5);
      CHECK(row.at("peak_mb") > row.at("pool_mb"));
    }
    // A training step multiplies three times what a forward pass does, and attention's scores once more.
    CHECK(all[0].at("gflop") > 2.9 * all[1].at("gflop").get<double>());
    CHECK(all[0].at("gflop") < 3.2 * all[1].at("gflop").get<double>());
    options.names = {"forward"};
    options.precision = "bfloat16";
    auto const other = rows(options);
    REQUIRE(other.size() == 1);
    CHECK(other[0].at("precision") == "bfloat16");
    CHECK(other[0].at("gflop") == all[1].at("gflop"));
    CHECK_THROWS_WITH_AS(page(small("gpt", "nanoo")),
                         "--size: there is no 'nanoo'; did you mean 'nano'? (there are tiny, nano, small, gpt2)", ConfigError);
    refuses(small("gpt", "tiny", {"training"}), "there is no 'training'");
    options.precision = "float16";
    refuses(options, "there is no 'float16'");
  }

  TEST_CASE_FIXTURE(test::InFolder, "training: a step of what a file describes, with what replaces its keys" * test::needs("translation")) {
    auto const file = (folder / "copy.yaml").string();
    test::put(file,
              "name: little\ndata: {kind: pairs, task: {kind: copy, length: 4}}\n"
              "model: {kind: transformer, layers: 1, heads: 2, width: 8, context: 16}\ntrain: {steps: 1, batch: 4}\n");
    refuses(small("training", ""), "bench training: which one? A YAML file is missing");
    auto options = small("training", "", {file, "train.batch=6"});
    auto const all = rows(options);
    REQUIRE(all.size() == 1);
    CAPTURE(all[0].dump());
    CHECK(all[0].at("what") == "train");
    CHECK(all[0].at("size") == "little");
    CHECK(all[0].at("precision") == "float32");
    CHECK(all[0].at("tokens_per_second").get<double>() == doctest::Approx(1e3 * 6 * 5 / all[0].at("median_ms").get<double>()));
    CHECK(all[0].at("gflop") > 0);
    auto const path = [&](char const* override_of_model, Index length) {
      auto const changed = small("training", "", {file, fmt::format("data.task.length={}", length), override_of_model});
      return rows(changed).at(0).at("critical_path").get<Index>();
    };
    Index const parallel = all[0].at("critical_path").get<Index>();
    CHECK(path("model.layers=1", 8) == parallel);
    CHECK(path("model.layers=2", 4) > parallel);
    constexpr char const* recurrent = "model={kind: recurrent_seq2seq, width: 8, context: 16}";
    CHECK(path(recurrent, 8) > path(recurrent, 4) + 4);  // its encoder and its decoder go on from word to word
    options.precision = "bfloat16";
    options.recompute = true;
    auto const other = rows(options);
    CHECK(other.at(0).at("precision") == "bfloat16");
    CHECK(other.at(0).at("recompute") == true);
    CHECK(other.at(0).at("gflop") > all[0].at("gflop"));
    CHECK(!products().bfloat16);
    refuses(small("training", "", {file, "train.bach=6"}), "did you mean 'batch'?");
    CHECK_THROWS_AS(page(small("training", "", {(folder / "none.yaml").string()})), Error);
  }
}
