#include "experiments/folder/result_file.hpp"

#include "experiments/ablation/jobs.hpp"
#include "experiments/commands/commands.hpp"
#include "experiments/folder/record.hpp"
#include "experiments/report/html.hpp"
#include "nn/files/json.hpp"
#include "nn/files/npz.hpp"
#include "tests/experiments/refused.hpp"
#include "tests/json.hpp"

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
  };

  /// A damaged file of the run or the ablation, which a command refuses with exit code 3, in one line that names it.
  struct BadResult {
    std::string command, file;
    test::Damage damage;
    std::string why;
  };
  void refuse_results(std::vector<BadResult> const& rows) {
    for (auto const& row : rows) {
      CAPTURE(row.file);
      Results const results;
      auto const file = results.folder / row.file;
      auto const run = results.run.string(), output = results.folder.path().string();
      row.damage(file);
      std::vector<std::string> arguments{row.command, file.parent_path().string(), "--output", output};
      if (row.command == "compare") arguments = {row.command, run, run};
      auto const outcome = test::run_heed(arguments);
      test::check_refused(outcome, 3, {file.string(), row.why});
      CHECK(outcome.errors.find("json.exception") == std::string::npos);
    }
  }
  std::string const summary = "run/summary.json", rows = "run/metrics.jsonl", config = "run/config.yaml", table = "ablation/results.csv";

  }  // namespace

  TEST_CASE("a pipe or a folder in a result's place is refused, and nobody waits for it") {
    refuse_results({{"compare", config, test::pipe_there, "not a regular file"}});
    for (bool const pipe : {true, false}) {
      auto const& damage = pipe ? test::pipe_there : test::folder_there;
      std::string const why = pipe ? "not a regular file" : "Is a directory";
      for (auto const& file : {summary, rows, table}) refuse_results({{"report", file, damage, why}});
      refuse_results({{"compare", rows, damage, why}});
      Results const results;
      for (auto const& file : {summary, rows}) {
        damage(results.folder / file);
        CHECK_THROWS_AS(find_json(results.folder / file), FileError);
      }
      CHECK(!last_step(results.run));
    }
  }

  TEST_CASE("brackets in brackets end at a limit, not at the end of the stack") {
    std::string const row = deep(1'000'000, "{\"step\":0,\"x\":", "}\n") + "{\"step\":1,\"loss\":2.0}\n";
    refuse_results({
        {"report", summary, deep(300'000), "nested more than 64 deep"},
        {"report", summary, deep(300'000, R"({"name":"run","environment":{"x":)", "}}"), "nested more than 64 deep"},
        {"report", summary, std::string(2'000'000, '['), "nested more than 64 deep"},
        {"report", rows, row, "metrics.jsonl:1: the row of metrics is nested more than 64 deep"},
        {"compare", rows, row, "nested more than 64 deep"},
    });
    CHECK(parse_json<test::Json>(deep(64), "it").is_array());
    CHECK_THROWS_WITH_AS(parse_json<test::Json>(deep(65), "it"), "it is nested more than 64 deep", FileError);
  }

  TEST_CASE("rows without a step that is a whole number, or that go back") {
    for (char const* const step : {"\"1\"", "null", "[1]", "{}", "1.5", "-1", "9223372036854775808", "true"}) {
      auto const bad = fmt::format("{{\"step\":0,\"loss\":3.0}}\n{{\"step\":{},\"loss\":2.0}}\n", step);
      for (char const* const command : {"report", "compare"})
        refuse_results({{command, rows, bad, "metrics.jsonl:2: is not a row of metrics"}});
    }
    refuse_results({{"compare", rows, "{\"step\":5,\"loss\":3.0}\n{\"step\":4,\"loss\":2.0}\n", "metrics.jsonl:2: step 4 after step 5"}});
  }

  TEST_CASE_FIXTURE(Results, "results of other types than a summary has") {
    for (char const* const text : {R"({"name":3})", R"({"name":"run","steps":"many"})", R"({"name":"run","configuration":[1]})",
                                   R"({"ablation":"x","metric":"loss","seeds":[1],"arms":[{"name":"a","values":{"one":2.0}}]})"}) {
      test::put(folder / summary, text);
      test::refuses({"report", run.string()}, 3, {"summary.json: is not a summary of a run or an ablation"});
    }
    test::put(run / "failure.json", R"({"message": 3, "log": {}})");
    CHECK(!failure_of(run));
  }

  TEST_CASE_FIXTURE(Results, "attention maps that claim more than they hold are left out with a warning") {
    fs::path const maps = ablation / "a-seed1-0/attention/step-000001.npz";
    auto npy = [](std::string const& type, std::string const& shape, std::string const& elements) {
      auto const header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}\n", type, shape);
      return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header + elements;
    };
    auto const four = NpyArray::of("layer0.weights", Tensor::full({1, 1, 2, 2}, 0.5, DType::float32));
    for (auto const& [array, why] : std::vector<std::pair<NpyArray, std::string>>{
             {{"labels", npy("<U0", "1000000000000,", "")}, "labels: holds no texts"},
             {{"layer1.weights", npy("<f4", "1, 1, 1, 1, 1, 1, 1, 1, 1", std::string(4, '\0'))}, "layer1.weights: has more than 8 axes"},
             {{"layer1.weights", npy("<f4", "0, 1000000000, 1000000000", "")}, "layer1.weights: has no shape"}}) {
      write_npz(maps, {four, array});
      test::run_well({"report", ablation.string()});
      auto const page = test::get(ablation / "report.html");
      CHECK(page.find(maps.string() + ": " + why) != std::string::npos);
    }
  }

  TEST_CASE_FIXTURE(test::InFolder, "an .npz whose entries share their bytes is refused") {
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

  TEST_CASE_FIXTURE(test::InFolder, "a run in a folder whose name is not UTF-8 comes to its end, with a summary and a report") {
    fs::path const not_utf8 = folder / "d\xff";
    fs::create_directory(not_utf8);
    test::put(not_utf8 / "text.txt", std::string(400, 'a') + "b");
    test::put(not_utf8 / "r.yaml",
              "name: r\ndata: {kind: text, path: text.txt}\nmodel: {kind: gpt, layers: 1, heads: 1, width: 8, context: 8}\n"
              "train: {steps: 2, batch: 2}\n");
    test::run_well({"run", (not_utf8 / "r.yaml").string(), "--output", not_utf8.string(), "--quiet"});
    CHECK(test::get(not_utf8 / "r/summary.json").find("/d\uFFFD/text.txt\"") != std::string::npos);
    CHECK(fs::exists(not_utf8 / "r/report.html"));
  }

  TEST_CASE_FIXTURE(test::InFolder, "a message is said whole, whatever it holds") {
    auto const [code, output, errors] = test::run_heed({"inspect", "nowhere", "--text", "x", "--output", "a\nb"});
    CHECK(code == 2);
    CHECK(std::count(errors.begin(), errors.end(), '\n') == 1);
    test::put(folder / "r.yaml", "name: r\ndata: {kind: text, path: \"t\\0.txt\"}\nmodel: {kind: gpt}\n");
    auto const said = test::run_heed({"run", (folder / "r.yaml").string(), "--output", folder.path().string()}).errors;
    INFO(said);
    CHECK(said.find("t\\x00.txt: no such file") != std::string::npos);
  }

  TEST_CASE_FIXTURE(test::InFolder, "bytes that are not UTF-8 are replaced, in JSON and in pages") {
    CHECK(json_text({{"path", "a\xff/\xc3\xa9\xe2\x82"}}) == "{\"path\":\"a\uFFFD/é\uFFFD\"}");
    CHECK(escape("<a\xff/é\xe2\x82") == "&lt;a\uFFFD/é\uFFFD\uFFFD");
    test::put(folder / "log.txt", "heed: \xff.txt: cannot be read\n");
    auto const failure = record_failure(folder.path(), 3);
    CHECK(failure.message == "\xff.txt: cannot be read");
    auto const kept = failure_of(folder.path());
    REQUIRE(kept);
    CHECK(kept->message == "\uFFFD.txt: cannot be read");
  }
}
