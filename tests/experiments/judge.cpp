#include "tests/experiments/said.hpp"
#include "tests/experiments/small_ablation.hpp"

// heed judge, through the real program.

using namespace heed;
namespace fs = std::filesystem;

namespace {

using test::Arguments, test::check_ends, test::check_holds;

struct JudgedRun {
  test::Folder folder;
  fs::path runs = folder / "runs", base = folder / "base.yaml";

  JudgedRun() { test::put(base, test::small_base); }
  Arguments command(Arguments const& candidate) const {
    return test::joined(test::joined({"judge", base.string()}, candidate), {"--output", runs.string()});
  }
  test::Outcome judge(Arguments const& candidate) const { return test::run_heed(command(candidate)); }
  /// The answer as JSON, without what takes time.
  test::Json answer(Arguments const& candidate, int code) const {
    auto const outcome = judge(test::joined(candidate, {"--json", "--quiet"}));
    check_ends(outcome, code);
    auto json = test::Json::parse(outcome.output);
    for (auto const* const key : {"seconds", "folder"}) {
      CHECK(json.contains(key));
      json.erase(key);
    }
    return json;
  }
  /// How many trials of an arm have finished.
  std::ptrdiff_t finished(std::string const& arm) const {
    if (!fs::exists(runs)) return 0;
    return std::count_if(fs::recursive_directory_iterator(runs), {}, [&](fs::path const& path) {
      return path.filename() == "summary.json" && path.parent_path().filename().string().starts_with(arm + "-seed");
    });
  }
};

Arguments const slow{"train.optimizer.lr=1.0e-6"};

}  // namespace

TEST_SUITE("judge") {
  TEST_CASE("a worse candidate in six pairs; the base is trained once; the ledger says what stands; a second call trains nothing") {
    JudgedRun const bench;
    auto const outcome = bench.judge(slow);
    check_ends(outcome, 11);
    check_holds(outcome.output, {"worse than base (e = ", "6 pairs)", "noise: base varies by",
                                 "1 candidate tried against this base: of 1 verdict 1 stands "
                                 "after e-BH at 5 %"});
    auto const json = bench.answer(slow, 11);
    CHECK(json["pairs"] == 6);
    CHECK(json["verdict"] == "worse");
    CHECK(json["e"] >= 20);
    CHECK(json["p"] <= 0.05);
    CHECK(json["difference"] > 0);
    CHECK(json["interval"][0] > 0);
    CHECK(json["read"].size() >= 2);
    CHECK(json["noise_floor"]["deviation"] > 0);
    CHECK(json["noise_floor"]["difference_told"] > 0);
    CHECK(bench.finished("base") == 6);
    bench.answer({"train.optimizer.lr=2.0e-6"}, 11);
    CHECK(bench.finished("base") == 6);
    CHECK(bench.finished("lr=2.0e-6") == 6);
    CHECK(test::lines_of(test::get(bench.runs / "judge.jsonl")).size() == 3);
    auto const ledger = test::run_well({"judge", "--ledger", "--output", bench.runs.string()}).output;
    check_holds(ledger, {"2 candidates tried", "of 2 verdicts 2 stand", "lr=1.0e-6"});
    check_holds(test::get(bench.runs / "judge-ledger/report.html"), {"lr=2.0e-6"});
  }

  TEST_CASE("the same bits, killed in the middle or not, one at a time or four, as changed keys or as a file") {
    JudgedRun const whole, killed, four, file;
    auto const expected = whole.answer(slow, 11);
    {
      test::Program program(killed.command(slow));
      CHECK(program.wait_until([&] { return killed.finished("base") == 2; }));
      program.send(SIGKILL);
      program.wait();
    }
    CHECK(killed.finished("base") >= 2);
    CHECK(killed.answer(slow, 11) == expected);
    CHECK(four.answer(test::joined(slow, {"--jobs", "4"}), 11) == expected);
    test::put(file.folder / "slow.yaml", std::string(test::small_base) + "  optimizer: {lr: 1.0e-6}\n");
    auto const by_file = file.answer({(file.folder / "slow.yaml").string()}, 11);
    for (auto const* const key : {"difference", "interval", "e", "p", "pairs", "read"}) CHECK(by_file[key] == expected[key]);
  }

  TEST_CASE("a key without effect is equivalent; an open question says how many pairs would tell; more pairs may be asked for") {
    JudgedRun const bench;
    auto const outcome = bench.judge({"train.checkpoint.every=20"});
    check_ends(outcome, 12);
    check_holds(outcome.output, {"are identical on all 6 seeds"});
    CHECK(bench.answer({"train.checkpoint.every=20"}, 12)["verdict"] == "equivalent");
    auto const stopped = bench.judge({"train.steps=2000000", "--within", "1s"});
    check_ends(stopped, 13);
    check_holds(stopped.errors, {"no pair has finished in"});
    for (auto const& entry : fs::recursive_directory_iterator(bench.runs))  // nothing runs any more
      if (entry.path().filename() == "report.html") CHECK(test::get(entry.path()).find("http-equiv=\"refresh\"") == std::string::npos);
    auto const first = bench.answer(slow, 11), more = bench.answer(test::joined(slow, {"--pairs", "8"}), 11);
    CHECK(more["pairs"] == 8);
    CHECK(more["e"] > first["e"].get<double>());
    CHECK(bench.answer(slow, 11) == more);  // evidence is not taken back
  }

  TEST_CASE_FIXTURE(JudgedRun, "a better candidate is called better") {
    test::put(base, std::string(test::small_base) + "  optimizer: {lr: 1.0e-6}\n");
    auto const outcome = judge({"train.optimizer.lr=1.0e-2"});
    check_ends(outcome, 10);
    check_holds(outcome.output, {"lr=1.0e-2 is ", "better than base (e = "});
    fs::copy(base, folder / "lr=1.yaml");
    check_holds(judge({(folder / "lr=1.yaml").string()}).errors, {"are one configuration"});  // a file, for it is there
  }

  TEST_CASE("what cannot be judged is refused") {
    JudgedRun const bench;
    test::put(bench.folder / "small.yaml", test::small_ablation);
    auto const base = bench.base.string();
    test::refuses({"judge"}, 2, {"wants a base and a candidate, a table, or --ledger"});
    test::refuses({"judge", base}, 2, {"one configuration"});
    test::refuses({"judge", base, "model.width=8", base}, 2, {"wants a base, then a candidate"});
    test::refuses({"judge", base, "modl.width=8"}, 2, {"model"});
    test::refuses({"judge", base, base}, 2, {"one configuration"});
    test::refuses({"judge", base, "seed=2"}, 2, {"one configuration"});
    test::refuses({"judge", (bench.folder / "small.yaml").string(), "model.width=8"}, 2, {"is an ablation"});
    test::refuses({"judge", base, "model.width=8", "--within", "soon"}, 2, {"wants a time"});
    test::refuses({"judge", base, "model.width=8", "--metric", "validation.los"}, 2, {"did you mean 'validation.loss'"});
    test::refuses({"judge", base, "model.width=8", "--lower", "--higher"}, 2, {"does not go with"});
    test::refuses({"judge", base, "model.width=8", "--fixed"}, 2, {"--fixed: has no meaning for runs"});
    test::refuses({"judge", "--ledger", base}, 2, {"--ledger: goes with neither WHAT nor --json"});
    test::put(bench.folder / "one.csv", "arm,seed,loss\na,1,1\na,2,1\n");
    test::refuses({"judge", (bench.folder / "one.csv").string(), "--lower", "--pairs", "9"}, 2, {"--pairs: has no meaning for a table"});
    test::refuses({"judge", (bench.folder / "one.csv").string(), "--lower"}, 3, {"has one arm alone, 'a'"});
  }

  TEST_CASE_FIXTURE(test::InFolder, "another program's table: the verdict, its page, the sign-flip test on request") {
    auto const path = folder / "runs.csv", output = folder / "runs";
    std::string table = "model,seed,loss\n";
    for (int seed = 1; seed <= 7; ++seed)
      table += fmt::format("torch,{0},{1:.3f}\nheed,{0},{2:.3f}\n", seed, 1 + 0.01 * seed, 0.9 + 0.012 * seed);
    test::put(path, table);
    Arguments const command{"judge", path.string(), "--arm", "model", "--metric", "loss", "--lower", "--output", output.string()};
    auto const outcome = test::run_heed(command);
    check_ends(outcome, 10);
    check_holds(outcome.output, {"heed is 0.092", "better than torch (e = ", "7 pairs)"});
    check_ends(test::run_heed(test::joined(command, {"--baseline", "heed"})), 11);
    check_ends(test::run_heed(test::joined(command, {"--margin", "0.2"})), 12);
    auto const fixed = test::run_heed(test::joined(command, {"--fixed", "--json"}));
    check_ends(fixed, 10);
    auto const json = test::Json::parse(fixed.output);
    CHECK(json["e"].is_null());
    CHECK(json["p"] == 2.0 / 128);
    CHECK(json["pairs"] == 7);
    auto const told = [](test::Json const& answer) { return answer["noise_floor"]["difference_told"].get<double>(); };
    CHECK(told(json) < told(test::Json::parse(test::run_heed(test::joined(command, {"--json"})).output)));  // of the test that decides
    auto const page = test::get(fs::path(json["folder"].get<std::string>()) / "report.html");
    check_holds(page, {"torch", "sign-flip test", "Hedges' correction"});
    for (auto const* const heeds : {"loss (nat)", "training loss"}) CHECK(page.find(heeds) == page.npos);
    for (auto const* const empty : {"tokens/s", "paired t", "nat better"}) CHECK(outcome.output.find(empty) == outcome.output.npos);
    test::put(path, "model,seed,loss\ntorch,1,1\nheed,1,2\n");
    auto const one = test::run_heed(command);  // of one value there is no deviation
    check_ends(one, 13);
    CHECK(one.output.find("noise:") == one.output.npos);
    check_holds(one.output, {"fewer pairs than the 6 that can tell a difference: heed (1)"});
    CHECK(test::Json::parse(test::run_heed(test::joined(command, {"--json"})).output)["noise_floor"]["deviation"].is_null());
    test::put(folder / "three.csv", "arm,seed,loss\na,1,1\nb,1,2\nc,1,3\n");
    auto const three = test::run_well({"judge", (folder / "three.csv").string(), "--lower", "--json", "--output", output.string()}).output;
    auto const arms = test::Json::parse(three)["arms"];
    CHECK(arms[0]["base_name"] == "a");
    CHECK(arms[0]["name"] == "b");
    CHECK(arms[1]["name"] == "c");
    test::refuses(test::joined(command, {"--baseline", "torhc"}), 2, {"did you mean 'torch'"});
  }
}
