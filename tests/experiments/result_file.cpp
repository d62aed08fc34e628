#include "experiments/run/result_file.hpp"

#include <functional>
#include <sstream>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "experiments/ablation/trial.hpp"
#include "experiments/commands/commands.hpp"
#include "experiments/report/html.hpp"
#include "experiments/report/report.hpp"
#include "experiments/run/failure.hpp"
#include "experiments/run/record.hpp"
#include "nn/files/json.hpp"
#include "nn/files/npz.hpp"
#include "tests/program.hpp"

TEST_SUITE("result_file") {
  using namespace heed;
  namespace fs = std::filesystem;

  namespace {

  std::string deep(std::size_t levels, std::string const& begin = "", std::string const& end = "") {
    return begin + std::string(levels, '[') + std::string(levels, ']') + end;
  }

  /// The folder of a finished run, and of an ablation with one arm of one trial, as far as reports and comparisons read them.
  struct Results {
    test::Folder folder;
    fs::path run = folder / "run", ablation = folder / "ablation";

    Results() {
      fs::create_directories(run);
      test::put(run / "config.yaml", "seed: 1\n");
      test::put(run / "summary.json", R"({"name":"run","steps":2,"validation.loss":2.5})");
      test::put(run / "metrics.jsonl", "{\"step\":0,\"loss\":3.0}\n{\"step\":1,\"loss\":2.0}\n");
      fs::create_directories(ablation / "a-seed1-0/attention");
      test::put(ablation / "summary.json",
                R"({"ablation":"x","metric":"loss","seeds":[1],"arms":[{"name":"a","folders":["a-seed1-0"],"values":{"1":2.0}}]})");
      test::put(ablation / "results.csv", "arm,seed,step,metric,value\na,1,0,loss,3.0\na,1,1,loss,2.0\n");
    }

    /// The program refuses a file of the run or the ablation with exit code 3, in one line that names it.
    void refuses(std::vector<std::string> const& command, fs::path const& file, std::string const& why) const {
      CAPTURE(file);
      test::Outcome const ended = test::run_heed(command);
      INFO(ended.errors);
      CHECK(ended.code == 3);
      CHECK(ended.errors.find(file.string()) != std::string::npos);
      CHECK(ended.errors.find(why) != std::string::npos);
      CHECK(ended.errors.find("json.exception") == std::string::npos);
      CHECK(std::count(ended.errors.begin(), ended.errors.end(), '\n') == 1);
    }
    void report_refuses(fs::path const& file, std::string const& why) const {
      refuses({"report", file.parent_path().string(), "--output", folder.path().string()}, file, why);
    }
    void compare_refuses(fs::path const& file, std::string const& why) const {
      refuses({"compare", run.string(), run.string()}, file, why);
    }
  };

  }  // namespace

  TEST_CASE("a pipe or a folder in a result's place is refused, and nobody waits for it") {
    struct Kind {
      std::function<void(fs::path const&)> put;
      std::string why;
    };
    for (auto const& [put, why] : {Kind{[](fs::path const& path) { REQUIRE(::mkfifo(path.c_str(), 0600) == 0); }, "not a regular file"},
                                   Kind{[](fs::path const& path) { fs::create_directory(path); }, "Is a directory"}}) {
      for (char const* const name : {"summary.json", "metrics.jsonl"}) {
        Results const results;
        fs::remove(results.run / name);
        put(results.run / name);
        results.report_refuses(results.run / name, why);
        if (std::string(name) == "metrics.jsonl") results.compare_refuses(results.run / name, why);
        if (std::string(name) == "metrics.jsonl") CHECK(!last_step(results.run));
        CHECK_THROWS_AS(find_json(results.run / name), FileError);
      }
      Results const results;
      fs::remove(results.ablation / "results.csv");
      put(results.ablation / "results.csv");
      results.report_refuses(results.ablation / "results.csv", why);
    }
    Results const results;
    fs::remove(results.run / "config.yaml");
    REQUIRE(::mkfifo((results.run / "config.yaml").c_str(), 0600) == 0);
    results.compare_refuses(results.run / "config.yaml", "not a regular file");
  }

  TEST_CASE("brackets in brackets end at a limit, not at the end of the stack") {
    Results const results;
    for (auto const& text : {deep(300'000), deep(300'000, R"({"name":"run","environment":{"x":)", "}}"), std::string(2'000'000, '[')}) {
      test::put(results.run / "summary.json", text);
      results.report_refuses(results.run / "summary.json", "nested more than 64 deep");
    }
    Results const others;
    test::put(others.run / "metrics.jsonl", deep(1'000'000, "{\"step\":0,\"x\":", "}\n") + "{\"step\":1,\"loss\":2.0}\n");
    others.report_refuses(others.run / "metrics.jsonl", "metrics.jsonl:1: the row of metrics is nested more than 64 deep");
    others.compare_refuses(others.run / "metrics.jsonl", "nested more than 64 deep");
    CHECK(parse_json<nlohmann::json>(deep(64), "it").is_array());
    CHECK_THROWS_WITH_AS(parse_json<nlohmann::json>(deep(65), "it"), "it is nested more than 64 deep", FileError);
  }

  TEST_CASE("rows without a step that is a whole number") {
    for (char const* const step : {"\"1\"", "null", "[1]", "{}", "1.5", "-1", "9223372036854775808", "true"}) {
      Results const results;
      test::put(results.run / "metrics.jsonl", fmt::format("{{\"step\":0,\"loss\":3.0}}\n{{\"step\":{},\"loss\":2.0}}\n", step));
      results.report_refuses(results.run / "metrics.jsonl", "metrics.jsonl:2: is not a row of metrics");
      results.compare_refuses(results.run / "metrics.jsonl", "metrics.jsonl:2: is not a row of metrics");
    }
  }

  TEST_CASE("rows that go back") {
    Results const results;
    test::put(results.run / "metrics.jsonl", "{\"step\":5,\"loss\":3.0}\n{\"step\":4,\"loss\":2.0}\n");
    results.compare_refuses(results.run / "metrics.jsonl", "metrics.jsonl:2: step 4 after step 5");
  }

  TEST_CASE("results of other types than a summary has") {
    for (char const* const text : {R"({"name":3})", R"({"name":"run","steps":"many"})", R"({"name":"run","configuration":[1]})",
                                   R"({"ablation":"x","metric":"loss","seeds":[1],"arms":[{"name":"a","values":{"one":2.0}}]})"}) {
      Results const results;
      test::put(results.run / "summary.json", text);
      test::Outcome const ended = test::run_heed({"report", results.run.string()});
      INFO(ended.errors);
      CHECK(ended.code == 3);
      CHECK(ended.errors.find("summary.json: is not a summary of a run or an ablation") != std::string::npos);
    }
    Results const results;
    test::put(results.run / "failure.json", R"({"message": 3, "log": {}})");
    CHECK(!failure_of(results.run));
  }

  TEST_CASE("attention maps that claim more than they hold are left out with a warning") {
    Results const results;
    fs::path const maps = results.ablation / "a-seed1-0/attention/step-000001.npz";
    auto npy = [](std::string const& type, std::string const& shape, std::string const& elements) {
      auto const header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}\n", type, shape);
      return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header + elements;
    };
    auto const four = NpyArray::of("layer0.weights", Tensor::full({1, 1, 2, 2}, 0.5, DType::float32));
    struct Case {
      NpyArray array;
      std::string why;
    };
    for (auto const& [array, why] :
         {Case{{"labels", npy("<U0", "1000000000000,", "")}, "labels: holds no texts"},
          Case{{"layer1.weights", npy("<f4", "1, 1, 1, 1, 1, 1, 1, 1, 1", std::string(4, '\0'))}, "layer1.weights: has more than 8 axes"},
          Case{{"layer1.weights", npy("<f4", "0, 1000000000, 1000000000", "")}, "layer1.weights: has no shape"}}) {
      write_npz(maps, {four, array});
      test::Outcome const ended = test::run_heed({"report", results.ablation.string()});
      INFO(ended.errors);
      CHECK(ended.code == 0);
      auto const page = test::get(results.ablation / "report.html");
      CHECK(page.find(maps.string() + ": " + why) != std::string::npos);
    }
  }

  TEST_CASE("an .npz whose entries share their bytes is refused") {
    test::Folder const folder;
    auto const path = folder / "a.npz";
    write_npz(path, {NpyArray::of("x", Tensor::zeros({1000}, DType::float64))});
    auto file = test::get(path);
    auto const directory = file.find("PK\x01\x02"), end = file.find("PK\x05\x06");
    auto const entry = file.substr(directory, end - directory);
    auto tail = file.substr(end);
    tail[8] = tail[10] = 3;
    test::put(path, file.substr(0, end) + entry + entry + tail);
    CHECK_THROWS_WITH_AS(read_npz(path), doctest::Contains("has arrays that overlap"), FileError);
  }

  TEST_CASE("a run in a folder whose name is not UTF-8 comes to its end, with a summary and a report") {
    test::Folder const folder;
    fs::path const place = folder / "d\xff";
    fs::create_directory(place);
    test::put(place / "text.txt", std::string(400, 'a') + "b");
    test::put(place / "r.yaml",
              "name: r\ndata: {kind: text, path: text.txt}\nmodel: {kind: gpt, layers: 1, heads: 1, width: 8, context: 8}\n"
              "train: {steps: 2, batch: 2}\n");
    test::Outcome const ended = test::run_heed({"run", (place / "r.yaml").string(), "--output", place.string(), "--quiet"});
    INFO(ended.errors);
    CHECK(ended.code == 0);
    CHECK(test::get(place / "r/summary.json").find("/d\uFFFD/text.txt\"") != std::string::npos);
    CHECK(fs::exists(place / "r/report.html"));
  }

  TEST_CASE("a message is said whole, whatever it holds") {
    auto const [code, output, errors] = test::run_heed({"inspect", "nowhere", "--text", "x", "--output", "a\nb"});
    CHECK(code == 2);
    CHECK(std::count(errors.begin(), errors.end(), '\n') == 1);
    test::Folder const folder;
    test::put(folder / "r.yaml", "name: r\ndata: {kind: text, path: \"t\\0.txt\"}\nmodel: {kind: gpt}\n");
    auto const said = test::run_heed({"run", (folder / "r.yaml").string(), "--output", folder.path().string()}).errors;
    INFO(said);
    CHECK(said.find("t\\x00.txt: no such file") != std::string::npos);
  }

  TEST_CASE("bytes that are not UTF-8 are replaced, in JSON and in pages") {
    CHECK(json_text({{"path", "a\xff/\xc3\xa9\xe2\x82"}}) == "{\"path\":\"a\uFFFD/é\uFFFD\"}");
    CHECK(escape("<a\xff/é\xe2\x82") == "&lt;a\uFFFD/é\uFFFD\uFFFD");
    test::Folder const folder;
    test::put(folder / "log.txt", "heed: \xff.txt: cannot be read\n");
    auto const failure = record_failure(folder.path(), 3);
    CHECK(failure.message == "\xff.txt: cannot be read");
    auto const kept = failure_of(folder.path());
    REQUIRE(kept);
    CHECK(kept->message == "\uFFFD.txt: cannot be read");
  }
}
