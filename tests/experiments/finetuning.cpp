// experiments/finetuning.md, command by command as it stands there.

#include "tests/experiments/page_commands.hpp"
#include "tests/json.hpp"

TEST_SUITE("finetuning") {
  using namespace heed::test;

  TEST_CASE_FIXTURE(InFolder, "the page's commands do what it says, one after another") {
    std::map<std::string, std::string> said;
    for (Command const& command : commands("experiments/finetuning.md")) {
      CAPTURE(command.location);
      std::vector<std::string> arguments(command.words.begin() + 1, command.words.end());
      for (auto& argument : arguments)
        if (auto const at = argument.find("runs/"); at != argument.npos && (at == 0 || argument[at - 1] == '='))
          argument.replace(at, 5, (folder / "runs/").string());
      auto const outcome = run_well(joined(arguments, {"--output", (folder / "runs").string()}));
      said[arguments[0] + " " + arguments[1].substr(arguments[1].rfind('/') + 1)] = outcome.output;
    }
    CHECK(said.size() >= 8);
    auto const runs = folder / "runs";
    CHECK(summary_of(runs / "reviews")["validation.accuracy"].get<double>() > 0.8);
    CHECK(summary_of(runs / "longer")["continued"]["step"] == 80);
    CHECK(summary_of(runs / "down")["steps"] == 120);
    CHECK(lines_of(get(runs / "answers.csv")).size() == 41);
    CHECK(std::filesystem::exists(runs / "reviews/evaluation-table-later/confusion.pdf"));
    check_holds(get(runs / "maps.html"), {"layer 1", "<svg"});
    CHECK(std::filesystem::file_size(runs / "head.png") > 1000);
    check_holds(said["check classify.yaml"], {"layers: 2", "kind: rotary"});
    check_holds(get(runs / "reviews-folds/summary.md"), {"Nadeau & Bengio 2003"});
    check_holds(get(runs / "reviews-methods/summary.md"), {"adapters", "last layer"});
  }
}
