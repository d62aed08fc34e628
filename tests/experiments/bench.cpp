#include "experiments/bench.hpp"

#include <sstream>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "autograd/tensor.hpp"
#include "experiments/bench/measure.hpp"
#include "experiments/config.hpp"
#include "nn/attention/steps.hpp"
#include "nn/position.hpp"

TEST_SUITE("bench") {
  using namespace heed;
  using Json = nlohmann::json;

  namespace {

  BenchOptions small() {
    BenchOptions options;
    options.what = "attention";
    options.size = "1x2x5x4";
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
    std::istringstream lines(page(options));
    std::vector<Json> result;
    for (std::string line; std::getline(lines, line);) result.push_back(Json::parse(line));
    return result;
  }

  }  // namespace

  TEST_CASE("every score with every align, every read and every position is measured, forward and with gradients") {
    auto const all = rows(small());
    auto const pairs = step_kinds<Score>().size() * step_kinds<Align>().size();
    CHECK(all.size() == 2 * (pairs + (step_kinds<Read>().size() - 1) + (position_kinds().size() - 1)));
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
    auto options = small();
    options.names = {"t5", "local_p"};
    options.causal = true;
    auto const chosen = rows(options);
    CHECK(chosen.size() == 2 * (1 + step_kinds<Score>().size() + 1));
    CHECK(chosen.front().at("score") == "scaled_dot");
    CHECK(chosen.back().at("position") == "t5");
    for (auto const& row : chosen) CHECK(row.at("causal") == true);
    auto const table = page(options);
    CHECK(table.find("1x2x5x4, causal") != std::string::npos);
    CHECK(table.find("local_p") != std::string::npos);
    CHECK(table.find("sparsemax") == std::string::npos);
  }

  TEST_CASE("what does not exist is refused with the nearest") {
    auto options = small();
    options.names = {"aditive"};
    CHECK_THROWS_WITH_AS(page(options), doctest::Contains("there is no 'aditive'; did you mean 'additive'?"), ConfigError);
    options = small();
    for (auto const* size : {"1x2x5", "1x2x5x4x3", "axb", "0x1x1x1", "1x2x5x4 ", "1x-2x5x4"}) {
      options.size = size;
      CHECK_THROWS_WITH_AS(page(options), doctest::Contains("--size: wants"), ConfigError);
    }
    options = small();
    options.what = "atention";
    CHECK_THROWS_WITH_AS(page(options), doctest::Contains("did you mean 'attention'?"), ConfigError);
  }

  TEST_CASE("a measurement counts the pool's memory beyond what was held before") {
    Tensor const before = Tensor::zeros({1000}, DType::float64);
    int calls = 0;
    auto const result = measure(
        [&] {
          ++calls;
          Tensor::zeros({500}, DType::float64);
        },
        0);
    CHECK(result.peak_bytes >= 4000);
    CHECK(result.peak_bytes < 8000);
    CHECK(calls == result.repetitions + 1);
  }
}
