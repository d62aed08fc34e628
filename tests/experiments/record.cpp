#include "experiments/folder/record.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "autograd/parallel.hpp"
#include "experiments/program/system.hpp"
#include "tests/json.hpp"
#include "tests/refusal.hpp"

using namespace heed;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

std::string row(Index step) { return to_json({step, {{"loss", 1.5}}}) + "\n"; }

std::string rows(Index count) {
  std::string all;
  for (Index i = 0; i < count; ++i) all += row(i);
  return all;
}

}  // namespace

TEST_SUITE("record") {
  TEST_CASE("a row is one line of JSON: the step, then the values in their order") {
    Row some{7, {}};
    some.set("loss", 1.25);
    some.set("grad_norm", 3);
    some.set("a", -0.0);
    CHECK(to_json(some) == R"({"step":7,"loss":1.25,"grad_norm":3.0,"a":-0.0})");
    CHECK(to_json(Row{0, {}}) == R"({"step":0})");
  }

  TEST_CASE("NaN and infinities are strings") {
    CHECK(to_json(Row{1, {{"a", std::nan("")}, {"b", infinity}, {"c", -infinity}}}) ==
          R"({"step":1,"a":"NaN","b":"Infinity","c":"-Infinity"})");
    CHECK(number(-std::nan("")) == "NaN");
    CHECK(number(2) == 2.0);
  }

  TEST_CASE("every real reads back exactly") {
    std::mt19937_64 random(1);
    auto const check = [](double value) {
      auto const back = test::Json::parse(to_json({0, {{"x", value}}}))["x"].get<double>();
      CHECK(std::bit_cast<std::uint64_t>(back) == std::bit_cast<std::uint64_t>(value));
    };
    for (double const value :
         {0.1, 1.0 / 3, 1e-300, 5e-324, 1.7976931348623157e308, 2.2250738585072014e-308, 9007199254740993.0, -0.0, 4.25})
      check(value);
    for (int i = 0; i < 20'000; ++i) {
      auto const value = std::bit_cast<double>(random());
      if (std::isfinite(value)) check(value);
    }
  }

  TEST_CASE_FIXTURE(test::InFolder, "rows before the step are kept, and nothing else") {
    auto const path = folder / "metrics.jsonl";
    struct Case {
      std::string content;
      Index step;
      std::string kept;
      Index last;
    };
    for (auto const& each : std::vector<Case>{
             {"", 0, "", -1},
             {rows(5), 0, "", -1},
             {rows(5), 3, rows(3), 2},
             {rows(5), 5, rows(5), 4},
             {rows(5), 9, rows(5), 4},
             {rows(5) + R"({"step":5,"lo)", 5, rows(5), 4},
             {rows(5) + R"({"step":4})", 9, rows(5), 4},  // whole, but without its line end: torn all the same
             {rows(2) + R"({"step":2)", 1, rows(1), 0},
             {rows(4) + std::string(100, '\0'), 4, rows(4), 3},
             {row(0) + row(10) + row(20), 11, row(0) + row(10), 10},
             {R"({"step":2})", 9, "", -1},
         }) {
      INFO("each.content ", each.content, ", each.step ", each.step);
      test::put(path, each.content);
      Metrics metrics(path, each.step);
      CHECK(test::get(path) == each.content);  // nothing is cut before the run begins
      metrics.open();
      CHECK(test::get(path) == each.kept);
      CHECK(metrics.last_step() == each.last);
      metrics.write({each.step, {{"loss", 2}}});
      metrics.sync();
      CHECK(metrics.last_step() == each.step);
      CHECK(test::get(path) == each.kept + to_json({each.step, {{"loss", 2}}}) + "\n");
    }
  }

  TEST_CASE_FIXTURE(test::InFolder, "a file that is not there is made") {
    Metrics metrics(folder / "metrics.jsonl", 4);
    metrics.open();
    CHECK(metrics.last_step() == -1);
    metrics.write({4, {}});
    CHECK(test::get(folder / "metrics.jsonl") == "{\"step\":4}\n");
  }

  TEST_CASE_FIXTURE(test::InFolder, "damage in the middle is told with file and line, and nothing is thrown away") {
    auto const path = folder / "metrics.jsonl";
    for (auto const* const damage : {"", "{\"step\":", "[2]", "null", "{}", "{\"step\": \"2\"}", "{\"step\": 2.5}", "{\"step\": 1}",
                                     "{\"step\": -1}", "\xff\xfe", "{\"step\": 2} {}", "{\"step\": 1e99999}", "{\"step\": null}"}) {
      CAPTURE(damage);
      std::string const content = rows(2) + damage + "\n" + row(3);
      test::put(path, content);
      CHECK_THROWS_WITH_AS(Metrics(path, 4), doctest::Contains((path.string() + ":3: ").c_str()), FileError);
      CHECK(test::get(path) == content);
    }
    // What follows the checkpoint is dropped whatever it is.
    test::put(path, rows(3) + "{\"step\": 3}\nrubbish\n");
    Metrics(path, 3).open();
    CHECK(test::get(path) == rows(3));
  }

  TEST_CASE_FIXTURE(test::InFolder, "rows that cannot be read are not thrown away") {
    auto const path = folder / "metrics.jsonl";
    test::put(path, rows(3));
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    int const next = ::dup(STDERR_FILENO);
    ::close(next);
    rlimit const none{static_cast<rlim_t>(next), before.rlim_max};  // more files
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
    std::string message;
    try {
      Metrics const metrics(path, 3);
    } catch (FileError const& error) {
      ::setrlimit(RLIMIT_NOFILE, &before);  // before a sanitizer looks at the error, for which it opens a pipe
      message = error.what();
    }
    ::setrlimit(RLIMIT_NOFILE, &before);
    CHECK(message == path.string() + ": cannot be read: Too many open files");
    CHECK(test::get(path) == rows(3));
  }

  TEST_CASE_FIXTURE(test::InFolder, "a pipe is refused, and not waited for") {
    auto const path = folder / "metrics.jsonl";
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    CHECK_THROWS_WITH_AS(Metrics(path, 0), (path.string() + ": cannot be read: not a regular file").c_str(), FileError);
  }

  TEST_CASE_FIXTURE(test::InFolder, "a file that cannot be written is no fault of the data") {
    std::filesystem::create_directory(folder / "metrics.jsonl");
    for (auto const& path : {folder / "metrics.jsonl", folder / "no" / "metrics.jsonl"}) {
      auto const write = [&] { Metrics(path, 0).open(); };
      CHECK(test::refusal(write).starts_with(path.string() + ": cannot be written: "));
      CHECK_THROWS_AS(test::refusal<FileError>(write), Error);  // of another kind
    }
  }

  TEST_CASE("the environment says what a result depends on") {
    auto const facts = environment();
    for (auto const* const key : {"revision", "dirty", "compiler", "build_type", "flags", "xtensor", "xsimd", "blas", "blas_path",
                                  "processor", "threads", "system"})
      CHECK_MESSAGE(facts.contains(key), key);
    CHECK(facts["threads"] == threads());
    CHECK(facts["blas"].get<std::string>().find("OpenBLAS") != std::string::npos);
    for (auto const* const key : {"compiler", "processor"}) CHECK_MESSAGE(facts[key].get<std::string>() != "", key);
    CHECK(facts["system"] == system_name());
    CHECK(system_name().find("Linux ") != std::string::npos);
    for (auto const* const library : {"xtensor", "xsimd"}) {
      std::string const version = facts[library];
      CHECK((version.find_first_not_of("0123456789.") == version.npos && version.find('.') != version.npos));
    }

    int const before = threads();
    std::string const with_all = numeric_environment();
    CHECK(with_all.find(std::to_string(before) + " threads") != std::string::npos);
    CHECK(with_all.find('\n') == std::string::npos);
    set_threads(before + 1);
    CHECK(numeric_environment() != with_all);
    set_threads(before);
    CHECK(numeric_environment() == with_all);
  }

  TEST_CASE("there is memory, and less of it than anyone has") { CHECK((available_memory() > 1e6 && available_memory() < 1e15)); }
}
