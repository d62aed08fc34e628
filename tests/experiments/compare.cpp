#include "experiments/commands/commands.hpp"
#include "experiments/config/yaml.hpp"
#include "tests/json.hpp"
#include "tests/rooms.hpp"

TEST_SUITE("compare") {
  using namespace heed;
  using Json = test::Json;

  TEST_CASE("runs beside each other: what differs, curves, final figures") {
    test::Folder const runs;
    for (char const* name : {"a", "b"}) {
      std::filesystem::create_directory(runs / name);
      test::put(runs / name / "config.yaml",
                std::string("name: ") + name + "\nmodel: {heads: " + (*name == 'a' ? "1" : "2") + "}\nseed: 1\n");
      test::put(runs / name / "metrics.jsonl",
                "{\"step\":0,\"validation.loss\":3.0}\n{\"step\":5,\"validation.loss\":\"NaN\"}\n"
                "{\"step\":9,\"validation.loss\":2.5}\n");
    }
    std::ostringstream out;
    Exit const code = compare_runs({"a", runs / "b"}, {.output = runs.path(), .data = {}, .config_folder = {}}, out);
    CHECK(code == Exit::done);
    CHECK(out.str() ==
          "  key          a  b\n"
          "  model.heads  1  2\n\n"
          "  validation.loss (nat)  first   lowest  last    at step\n"
          "  a                      3.0000  2.5000  2.5000  9        █×▁\n"
          "  b                      3.0000  2.5000  2.5000  9        █×▁\n\n");
    CHECK_THROWS_WITH_AS(compare_runs({"a", "c"}, {.output = runs.path(), .data = {}, .config_folder = {}}, out),
                         doctest::Contains("there is no such run"), ConfigError);
  }

  TEST_CASE("runs of one name in different folders get different names; the best value of a metric is the one that it says is better") {
    test::Folder const runs;
    for (char const* name : {"a/x", "b/x"}) {
      std::filesystem::create_directories(runs / name);
      test::put(runs / name / "config.yaml", "seed: 1\n");
      test::put(runs / name / "metrics.jsonl",
                "{\"step\":0,\"validation.exact\":0.25}\n{\"step\":5,\"validation.exact\":0.75}\n{\"step\":9,\"validation.exact\":0.5}\n");
    }
    std::ostringstream out;
    compare_runs({"a/x", "b/x/"}, {.output = runs.path(), .data = {}, .config_folder = {}}, out);
    for (char const* part : {"  a/x ", "  b/x ", "validation.exact  first   highest  last ", "0.2500  0.7500   0.5000"})
      CHECK_MESSAGE(out.str().find(part) != std::string::npos, part);
  }

  TEST_CASE("the schema knows every key, its type, range and words, of runs, ablations and studies") {
    auto const whole = Json::parse(schema());
    bool const studies = test::has_room("studies"), suites = test::has_room("suites");
    auto const& not_ablation = suites ? whole["else"]["else"] : whole["else"];
    auto const& of_run = studies ? not_ablation["else"] : not_ablation;
    auto const& run = of_run["properties"];
    CHECK(run["seed"]["type"] == "integer");
    CHECK(run["seed"]["minimum"] == 0);
    CHECK(of_run["required"] == Json::array({"data"}));
    CHECK(of_run["anyOf"] == Json::array({{{"required", {"model"}}}, {{"required", {"init"}}}}));  // weights bring their model
    CHECK(of_run["additionalProperties"] == false);
    auto const& kinds = run["model"]["anyOf"];
    auto const gpt = std::find_if(kinds.begin(), kinds.end(), [](Json const& kind) {
      return kind.contains("properties") && kind["properties"]["kind"]["const"] == "gpt";
    });
    REQUIRE(gpt != kinds.end());
    auto const& attention = (*gpt)["properties"]["attention"]["anyOf"];
    CHECK(attention[0]["properties"]["score"]["enum"].size() >= 7);
    CHECK(attention[0]["properties"]["window"]["exclusiveMinimum"] == 0);
    CHECK(attention[1]["enum"].dump().find("local-p") != std::string::npos);
    if (studies) CHECK(not_ablation["then"]["properties"].contains("study"));
    if (suites) {
      CHECK(whole["else"]["if"]["required"] == Json::array({"suite"}));
      CHECK(whole["else"]["then"]["properties"].contains("vary"));
      CHECK(!whole["else"]["then"].contains("required"));
    }
    auto const& ablation = whole["then"]["properties"];
    for (char const* key : {"ablation", "base", "vary", "together", "add", "skip", "seeds", "baseline", "metric", "better", "at", "tune",
                            "margin", "set", "published"})
      CHECK(ablation.contains(key));
  }
}
