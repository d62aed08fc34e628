// Tables of other programs' runs: each kind, how runs are named, which value counts, and tables that are refused by their line.

#include <fmt/ranges.h>

#include "autograd/error.hpp"
#include "experiments/config/yaml.hpp"
#include "experiments/judge/judge.hpp"
#include "nn/files/sha256.hpp"
#include "tests/folder.hpp"
#include "tests/refusal.hpp"

TEST_SUITE("runs_table") {
  using namespace heed;

  namespace {

  using Seeds = std::vector<Index>;
  using Curve = std::vector<std::pair<Index, double>>;
  using Files = std::vector<std::pair<std::string, std::string>>;  // names and contents
  using Asked = std::function<void(JudgeOptions&)>;
  Asked const nothing = [](auto&) {};

  double const worst = std::numeric_limits<double>::infinity();

  /// A folder with tables, read from there.
  struct TableBench {
    Material read(Files const& files, Asked const& ask = nothing) const {
      JudgeOptions options;
      for (auto const& [name, content] : files) {
        test::put(folder / name, content);
        options.what.push_back(folder / name);
      }
      options.lower = true;
      ask(options);
      return read_runs_table(options);
    }
    Material read(std::string const& name, std::string const& content, Asked const& ask = nothing) const {
      return read(Files{{name, content}}, ask);
    }
    /// What is said of tables, without the folder's name.
    std::string refused(Files const& files, Asked const& ask = nothing) const {
      return test::without_folder(test::refusal([&] { read(files, ask); }), folder);
    }
    std::string refused(std::string const& name, std::string const& content, Asked const& ask = nothing) const {
      return refused(Files{{name, content}}, ask);
    }
    test::Folder folder;
  };

  std::vector<std::string> arm_names(Material const& table) {
    std::vector<std::string> names;
    for (auto const& arm : table.arms) names.push_back(arm.name);
    return names;
  }

  std::string remarks_on(Material const& table) { return fmt::format("{}", fmt::join(table.sentences, "\n")); }

  void says(std::string const& text, std::string const& part) { CHECK_MESSAGE(text.find(part) != text.npos, text, " should say: ", part); }

  using ArmNames = std::vector<std::string>;

  /// Two arms with two seeds each, by the values 1, 2, 3, 4.
  void check_four_runs(Material const& table, std::string const& metric) {
    CHECK(arm_names(table) == ArmNames{"gpt", "rwkv"});
    CHECK(table.metric == metric);
    REQUIRE(table.arms.size() == 2);
    CHECK(table.arms[0].values == BySeed{{1, 1}, {2, 2}});
    CHECK(table.arms[1].values == BySeed{{1, 3}, {2, 4}});
    CHECK(table.seeds == Seeds{1, 2});
  }

  }  // namespace

  TEST_CASE_FIXTURE(TableBench, "long tables: CSV, tabs and JSON lines, columns by name or guessed") {
    std::string const csv = "arm,seed,note,loss\ngpt,1,a,1\nrwkv,1,\"b, \"\"c\"\"\",3\ngpt,2,c,2\nrwkv,2,d,4\n";
    auto const table = read("a.csv", csv);
    check_four_runs(table, "loss");
    CHECK(table.name == "a");
    CHECK(table.arms[0].histories.at(1).at("loss") == Curve{{0, 1}});
    REQUIRE(table.read.size() == 1);
    CHECK(table.read[0].file == (folder / "a.csv").string());
    CHECK(table.read[0].sha256 == sha256_of_file(folder / "a.csv"));
    says(remarks_on(table), "loss: arms are read from column arm, seeds from column seed, without steps");
    CHECK(table.unit.empty());

    std::string windows = "\xef\xbb\xbf";
    for (char const c : csv) windows += c == '\n' ? "\r\n" : std::string(1, c);
    check_four_runs(read("a.csv", windows), "loss");
    check_four_runs(read("a.tsv", "seed\tloss\tarm\n1\t1\tgpt\n1\t3\trwkv\n2\t2\tgpt\n2\t4\trwkv\n"), "loss");
    check_four_runs(read("a.csv", ",which,s,loss,accuracy\n0,gpt,1,1,9\n1,gpt,2,2,9\n2,rwkv,1,3,9\n3,rwkv,2,4,9\n",
                         [](auto& all) { all.arm = "which", all.seed = "s", all.metric = "loss"; }),
                    "loss");

    std::string const lines =
        "{\"arm\": \"gpt\", \"seed\": 1, \"loss\": 1.0, \"config\": {\"lr\": 1e-3}}\n"
        "{\"loss\": 2, \"seed\": 2, \"arm\": \"gpt\"}\n{\"arm\": \"rwkv\", \"seed\": \"1\", \"loss\": 3}\n";
    auto const with_loss = [](auto& all) { all.metric = "loss"; };
    check_four_runs(read("a.jsonl", lines + "{\"arm\": \"rwkv\", \"seed\": 2, \"loss\": 4}", with_loss), "loss");
  }

  TEST_CASE_FIXTURE(TableBench, "a value that is not finite is a run that diverged, worse than any number") {
    std::string const csv = "arm,seed,loss\na,1,inf\na,2,-inf\na,3,NaN\na,4,nan\na,5,1e3\n";
    auto const lower = read("a.csv", csv);
    CHECK(lower.arms.at(0).values == BySeed{{1, worst}, {2, worst}, {3, worst}, {4, worst}, {5, 1000}});
    auto const higher = read("a.csv", csv, [](auto& all) { all.lower = false, all.higher = true; });
    CHECK(higher.arms.at(0).values == BySeed{{1, -worst}, {2, -worst}, {3, -worst}, {4, -worst}, {5, 1000}});
    auto const json = read("a.jsonl",
                           "{\"arm\": \"say \\\"NaN\", \"seed\": 1, \"loss\": NaN}\n{\"arm\": \"say \\\"NaN\", \"seed\": 2, "
                           "\"loss\": -Infinity}\n{\"arm\": \"say \\\"NaN\", \"seed\": 3, \"loss\": \"Infinity\"}\n");
    CHECK(arm_names(json) == ArmNames{"say \"NaN"});
    CHECK(json.arms.at(0).values == BySeed{{1, worst}, {2, worst}, {3, worst}});
  }

  TEST_CASE_FIXTURE(TableBench, "rows of one task count; several must be told apart") {
    std::string const csv = "task,arm,seed,loss\nsum,gpt,1,1\nsum,gpt,2,2\ncopy,gpt,1,8\nsum,rwkv,1,3\nsum,rwkv,2,4\n";
    auto const table = read("a.csv", csv, [](auto& all) { all.task = "sum"; });
    check_four_runs(table, "loss");
    CHECK(table.name == "a sum");
    CHECK(refused("a.csv", csv) == "--task: say which task: copy, sum");
    CHECK(refused("a.csv", csv, [](auto& all) { all.task = "coyp"; }) ==
          "--task: there is no task 'coyp'; did you mean 'copy'? (there are copy, sum)");
    auto const one = read("a.csv", "task,arm,seed,loss\nsum,gpt,1,1\n");
    CHECK(one.name == "a sum");
    auto const sum = [](auto& all) { all.task = "sum"; };
    says(refused("a.csv", "arm,seed,loss\na,1,1\n", sum), "--task: there is no column 'task'");
    says(refused("a.csv", "Step,a-1 - loss\n0,1\n", sum), "--task: there is no column 'task'");
    says(refused("run-a-1-tag-loss.csv", "Wall time,Step,Value\n0,0,1\n", sum), "--task: there is no column 'task'");
  }

  TEST_CASE_FIXTURE(TableBench, "steps: the last value, the best, or that of a step; the rows are the run's curve") {
    std::string const csv = "arm,seed,epoch,loss\na,1,0,3\nb,1,0,4\na,1,10,1\na,1,20,2\nb,1,10,nan\nb,1,20,5\n";
    auto const at = [](std::string const& which, bool higher = false) -> Asked {
      return [=](auto& all) { all.step = "epoch", all.metric = "loss", all.at = which, all.higher = higher, all.lower = !higher; };
    };
    auto const last = read("a.csv", csv, at("last"));
    CHECK(last.arms.at(0).values == BySeed{{1, 2}});
    CHECK(last.arms.at(0).histories.at(1) == History{{"loss", Curve{{0, 3}, {10, 1}, {20, 2}}}});
    CHECK(last.arms.at(1).histories.at(1).at("loss") == Curve{{0, 4}, {10, worst}, {20, 5}});
    says(remarks_on(last), "the steps in column epoch");
    auto const best = read("a.csv", csv, at("best"));
    CHECK(best.arms.at(0).values == BySeed{{1, 1}});
    CHECK(best.arms.at(1).values == BySeed{{1, 4}});
    CHECK(read("a.csv", csv, at("best", true)).arms.at(1).values == BySeed{{1, 5}});
    auto const tenth = read("a.csv", csv, at("10"));
    CHECK(tenth.arms.at(0).values == BySeed{{1, 1}});
    CHECK(tenth.arms.at(1).values == BySeed{{1, worst}});
    CHECK(refused("a.csv", csv, at("15")) == "--at: a, seed 1, has no step 15; its last is 20");
    CHECK(refused("a.csv", csv, at("first")) == "--at: wants last, best or a step, found 'first'");
    for (std::string const which : {"best", "10"})
      CHECK(refused("a.csv", "arm,seed,loss\na,1,3\n", [&](auto& all) { all.at = which; }) ==
            "--at: there are no steps; name their column with --step");
    for (std::string const step : {"step", "_step", "Step"})
      CHECK(read("a.csv", "arm,seed," + step + ",loss\na,1,0,3\na,1,5,2\n").arms.at(0).histories.at(1).at("loss").size() == 2);
  }

  TEST_CASE_FIXTURE(TableBench, "heed's own results.csv: a row a number, with its metric's name") {
    std::string const csv =
        "arm,model.heads,seed,step,metric,value\ngpt,1,1,0,training.loss,9\ngpt,1,1,5,training.loss,8\ngpt,1,1,0,validation.loss,7\n"
        "gpt,1,1,5,validation.loss,1\ngpt,1,2,5,validation.loss,2\nrwkv,1,1,5,validation.loss,3\nrwkv,1,2,5,validation.loss,4\n";
    auto const table = read("results.csv", csv, [](auto& all) { all.metric = "validation.loss"; });
    check_four_runs(table, "validation.loss");
    CHECK(table.unit == "nat");
    CHECK(table.arms[0].histories.at(1) == History{{"validation.loss", Curve{{0, 7}, {5, 1}}}});
    for (Asked const& ask : {nothing, Asked([](auto& all) { all.lower = false; })})  // no direction is asked for before the metric
      CHECK(refused("results.csv", csv, ask) == "--metric: say which metric: training.loss, validation.loss");
    CHECK(read("results.csv", csv, [](auto& all) { all.metric = "validation.loss", all.lower = false; }).better == "lower");
    says(refused("a.csv", "arm,seed,speed\na,1,2\n", [](auto& all) { all.lower = false; }),
         "say which values of 'speed' are better: --lower or --higher");
    says(refused("results.csv", csv, [](auto& all) { all.metric = "validation.los"; }), "did you mean 'validation.loss'?");
  }

  TEST_CASE_FIXTURE(TableBench, "wide tables: a column an arm, a row a seed; empty cells are runs that are not there") {
    auto const table = read("a.csv", ",seed,gpt,rwkv\n0,1,1,3\n1,2,2,4\n");
    check_four_runs(table, "value");
    auto const gaps = read("a.csv", "seed,gpt,rwkv,s4\n1,1,3,\n2,2,4,\n7,,5,\n", [](auto& all) { all.metric = "loss"; });
    CHECK(gaps.metric == "loss");
    CHECK(gaps.arms.at(0).values == BySeed{{1, 1}, {2, 2}});
    CHECK(gaps.arms.at(1).values == BySeed{{1, 3}, {2, 4}, {7, 5}});
    says(remarks_on(gaps), "gpt: seeds missing, and left out of its comparisons: 7");
    says(remarks_on(gaps), "s4 has no value");
    auto const curves = read("a.csv", "seed,step,gpt\n1,0,5\n1,10,4\n");
    CHECK(curves.arms.at(0).histories.at(1).at("value") == Curve{{0, 5}, {10, 4}});
    std::string many = "seed,a,b\n";
    for (int seed = 1; seed <= 6; ++seed) many += fmt::format("{},1,2\n", seed);
    CHECK(remarks_on(read("a.csv", many)).find("seeds that all") == std::string::npos);
  }

  TEST_CASE_FIXTURE(TableBench, "a chart of Weights & Biases: a column a run, with bands, steps and empty cells") {
    std::string const csv =
        "\"Step\",\"gpt-seed1 - val/loss\",\"gpt-seed1 - val/loss__MIN\",\"gpt-seed1 - val/loss__MAX\",\"gpt-seed1 - _step\","
        "\"gpt-seed2 - val/loss\",\"rwkv-seed1 - val/loss\",\"rwkv-seed2 - val/loss\"\n"
        "\"0\",\"9\",\"8\",\"10\",\"0\",\"\",\"9\",\"9\"\n\"100\",\"1\",\"0\",\"2\",\"100\",\"2\",\"\",\"4\"\n"
        "\"150\",\"\",\"\",\"\",\"\",\"\",\"3\",\"\"\n";
    auto const table = read("wandb_export.csv", csv);
    check_four_runs(table, "val/loss");
    CHECK(table.arms[0].histories.at(1).at("val/loss") == Curve{{0, 9}, {100, 1}});
    CHECK(table.arms[0].histories.at(2).at("val/loss") == Curve{{100, 2}});
    CHECK(table.arms[1].histories.at(1).at("val/loss") == Curve{{0, 9}, {150, 3}});
    says(remarks_on(table), "val/loss: arms are read from a name, seeds from a name, last of the steps in column Step");
    says(remarks_on(table), "others end at step 150, and these before, so that they may not compare: gpt, seed 1 (step 100); gpt, seed 2");
    std::string const two = "Step,my - gpt-1 - loss,my - gpt-1 - accuracy,my - gpt-2 - loss\n0,1,0.5,2\n1,1,0.75,\n";
    CHECK(refused("a.csv", two) == "--metric: say which metric: accuracy, loss");
    CHECK(read("a.csv", two, [](auto& all) { all.metric = "accuracy"; }).arms.at(0).values == BySeed{{1, 0.75}});
    CHECK(arm_names(read("a.csv", two, [](auto& all) { all.metric = "loss"; })) == ArmNames{"my - gpt"});
    says(refused("a.csv", "Step,heads: 8 - loss\n0,1\n"), "a.csv:2: the run 'heads: 8' does not end in its seed");
    CHECK(refused("a.csv", two, [](auto& all) { all.metric = "los"; }) ==
          "--metric: there is no metric 'los'; did you mean 'loss'? (there are accuracy, loss)");
  }

  TEST_CASE_FIXTURE(TableBench, "trackio: runs by their names, which end in their seeds") {
    std::string const csv =
        "step,timestamp,loss,run\n0,2026-01-01T00:00:00,7,gpt-s1\n9,2026-01-01T00:00:09,1,gpt-s1\n"
        "9,2026-01-01T00:00:09,2,gpt-s2\n9,2026-01-01T00:00:09,3,rwkv-s1\n9,2026-01-01T00:00:09,4,rwkv-s2\n";
    auto const table = read("loss.csv", csv);
    check_four_runs(table, "loss");
    says(remarks_on(table), "loss: arms are read from column run, seeds from a name, last of the steps in column step");
    for (std::string const run : {"gpt-seed3", "gpt_seed3", "gpt-s3", "gpt_s3", "gpt-3", "gpt_3", "gpt-03"}) {
      CAPTURE(run);
      auto const one = read("a.csv", "run,loss\n" + run + ",1\n");
      CHECK(arm_names(one) == ArmNames{"gpt"});
      CHECK(one.seeds == Seeds{3});
    }
    CHECK(arm_names(read("a.csv", "run,loss\ngpt2-s-4,1\ntransformers-4,1\n")) == ArmNames{"gpt2-s", "transformers"});
    for (std::string const run :
         {"gpt", "gpt3", "gpts3", "3", "-3", "s3", "seed3", "gpt-seed", "gpt-0.3", "lr: 3", "gpt-99999999999999999999"}) {
      CAPTURE(run);
      says(refused("a.csv", "run,loss\n" + run + ",1\n"), "a.csv:2: the run '" + run + "' does not end in its seed");
    }
  }

  TEST_CASE_FIXTURE(TableBench, "TensorBoard: a file a run, named by its file") {
    std::string const head = "Wall time,Step,Value\n";
    auto const table = read({{"run-gpt-seed1-tag-loss.csv", head + "1.5,0,9\n2.5,10,1\n"},
                             {"run-gpt-seed2-tag-loss.csv", head + "1.5,10,2\n"},
                             {"run-rwkv_1-tag-loss.csv", head + "1.5,10,3\n"},
                             {"rwkv_2-tag-loss.csv", head + "1.5,10,4\n"}});
    check_four_runs(table, "loss");
    CHECK(table.arms[0].histories.at(1).at("loss") == Curve{{0, 9}, {10, 1}});
    CHECK(table.read.size() == 4);
    CHECK(read("gpt-4.csv", head + "1.5,10,4\n", [](auto& all) { all.metric = "loss"; }).metric == "loss");
    says(refused({{"a-1-tag-loss.csv", head + "0,0,1\n"}, {"a-2-tag-accuracy.csv", head + "0,0,1\n"}}),
         "a-2-tag-accuracy.csv: there is no metric 'loss' (there are accuracy)");
    says(refused("a-1-tag-loss.csv", head + "0,0,1\n", [](auto& all) { all.metric = "accuracy"; }),
         "a-1-tag-loss.csv: there is no metric 'accuracy' (there are loss)");
    says(refused({{"a-1-tag-loss.csv", head + "0,0,1\n"}, {"run-a-1-tag-loss.csv", head + "0,0,1\n"}}),
         "run-a-1-tag-loss.csv:2: 'a', seed 1, has step 0 after step 0");
    says(refused({{"a-1-tag-loss.csv", head + "0,0,1\n"}, {"b.csv", "arm,seed,loss\na,1,1\n"}}),
         "b.csv: is not TensorBoard's; make several files one table");
    says(refused({{"run-train-tag-loss.csv", head + "0,0,1\n"}}), "run-train-tag-loss.csv:2: the run 'train' does not end in its seed");
    says(refused({{"a-1-tag-loss.csv", head + "0,0,\n"}}), "a-1-tag-loss.csv:2: loss of 'a': '' is no number");
  }

  TEST_CASE_FIXTURE(TableBench, "columns that are not there, or not clear, are told with those that are") {
    std::string const csv = "arm,seed,loss,accuracy\na,1,1,0.5\n";
    CHECK(refused("a.csv", csv) == "--metric: say which column: accuracy, loss");
    CHECK(refused("a.csv", csv, [](auto& all) { all.arm = "amr"; }) ==
          "--arm: there is no column 'amr'; did you mean 'arm'? (there are arm, seed, loss, accuracy)");
    says(refused("a.csv", csv, [](auto& all) { all.seed = "sede"; }), "--seed: there is no column 'sede'; did you mean 'seed'?");
    says(refused("a.csv", csv, [](auto& all) { all.metric = "los"; }), "--metric: there is no column 'los'; did you mean 'loss'?");
    says(refused("a.csv", csv, [](auto& all) { all.step = "steps"; }), "--step: there is no column 'steps'");
    CHECK(refused("a.csv", "seed,attention,loss\n1,scaled,2\n") ==
          "a.csv:2: value of 'attention': 'scaled' is no number; if a column has the names of arms, say --arm");
    CHECK(refused("a.csv", "a,b\n1,2\n") == "--arm: say which column, if not --step or --seed: a, b");
    CHECK(refused("a.csv", "seed,loss,x\n1,2,3\n", [](auto& all) { all.metric = "loss"; }) ==
          "--arm: say which column, if not --step or --seed: seed, loss, x");
    CHECK(refused("a.csv", "arm,seed,note\na,1,x\n") == "--metric: say which column: arm, note, seed");
    CHECK_THROWS_AS(read("a.csv", csv), ConfigError);
    CHECK_THROWS_AS(read("a.csv", "arm,seed,loss\na,1,x\n"), ConfigError);
  }

  TEST_CASE_FIXTURE(TableBench, "tables that are wrong are refused by their line") {
    struct WrongTable {
      std::string file, content, message;
      Asked ask = [](auto& all) { all.metric = "loss"; };
    };
    std::string const head = "arm,seed,loss\n", good = "a,1,0.5\n", steps = "arm,seed,step,loss\n";
    std::string const object = "{\"arm\": \"a\", \"seed\": 1, \"loss\": 1}";
    std::vector<WrongTable> const tables{
        {"t.csv", "arm;seed;loss\na;1;0.5\n", "t.csv:1: has one column alone; fields are separated by commas"},
        {"t.csv", head + good + "b,1\n", "t.csv:3: has 2 columns, and there are 3: arm, seed, loss"},
        {"t.csv", head + "b,1,0.5,9\n" + good, "t.csv:2: has 4 columns, and there are 3"},
        {"t.csv", head + "b,1,0,5\n", "t.csv:2: has 4 columns, and there are 3"},
        {"t.csv", head + "b,1,\"0,5\"\n", "t.csv:2: loss of 'b': '0,5' is no number"},
        {"t.tsv", "arm\tseed\tloss\na\t1\t0,5\n", "t.tsv:2: loss of 'a': '0,5' is no number"},
        {"t.tsv", "arm\tseed\tloss\na\t1\t0.5\nb\t1\n", "t.tsv:3: has 2 columns"},
        {"t.csv", "arm;seed;loss\na;1;0,5\n", "t.csv:2: has 2 columns, and there are 1: arm;seed;loss"},
        {"t.csv", head + good + "\"b,1,0.5\n", "t.csv:3: the quote that begins a field here is never closed"},
        {"t.csv", head + good + "b,1,0.5\"\n", "t.csv:3: a quote inside a field"},
        {"t.csv", head + good + "\"b\"c,1,0.5\n", "t.csv:3: text behind the quote"},
        {"t.csv", "arm,seed,loss,note\na,1,1,\"two\nlines\"\nb,x,1,\n", "t.csv:4: seed: 'x' is no whole number from 0 on"},
        {"t.csv", head + good + "b\xff,1,0.5\n", "t.csv:3:2: byte 0xff is not UTF-8; save it as UTF-8"},
        {"t.csv", head + good + std::string(1, '\0') + ",1,0.5\n", "t.csv:3:1: a NUL byte"},
        {"t.csv", head + good + "a,1.5,0.5\n", "t.csv:3: seed: '1.5' is no whole number from 0 on"},
        {"t.csv", head + good + "a,-1,0.5\n", "t.csv:3: seed: '-1' is no whole number from 0 on"},
        {"t.csv", head + good + "a,,0.5\n", "t.csv:3: seed: '' is no whole number from 0 on"},
        {"t.csv", head + good + "a,99999999999999999999,0.5\n", "t.csv:3: seed: '99999999999999999999' is no whole number from 0 on"},
        {"t.csv", head + good + ",1,0.5\n", "t.csv:3: '' is no name of an arm"},
        {"t.csv", head + good + "\"b\nc\",1,0.5\n", "t.csv:3: 'b\\x0ac' is no name of an arm"},
        {"t.csv", head + good + " ,1,0.5\n", "t.csv:3: ' ' is no name of an arm"},
        {"t.csv", head + good + "a,2,\n", "t.csv:3: loss of 'a': '' is no number; of a run that diverged write NaN"},
        {"t.csv", head + good + "a,2,\n", "t.csv:3: loss of 'a': '' is no number; of a run that diverged write NaN", nothing},
        {"t.csv", head + "a,1,\na,2,1\n", "t.csv:2: loss of 'a': '' is no number", nothing},
        {"t.csv", head + good + "a,2,fast\n", "t.csv:3: loss of 'a': 'fast' is no number"},
        {"t.csv", head + good + "a,2, 0.5\n", "t.csv:3: loss of 'a': ' 0.5' is no number"},
        {"t.csv", head + good + "a,2,0.5%\n", "t.csv:3: loss of 'a': '0.5%' is no number"},
        {"t.csv", head + good + "a,2,1e999\n", "t.csv:3: loss of 'a': '1e999' is no number"},
        {"t.csv", head + good + "b,1,1\nc,1,1\nb,1,2\n",
         "t.csv:5: 'b', seed 1, is there twice; if these are steps, name their column with --step"},
        {"t.csv", steps + "a,1,0,1\na,1,10,1\nb,1,0,1\na,1,10,1\n", "t.csv:5: 'a', seed 1, has step 10 after step 10"},
        {"t.csv", steps + "a,1,0,1\na,1,10,1\na,1,5,1\n", "t.csv:4: 'a', seed 1, has step 5 after step 10"},
        {"t.csv", steps + "a,1,0,1\na,1,0.5,1\n", "t.csv:3: step: '0.5' is no whole number from 0 on"},
        {"t.csv", "arm,seed,loss,seed\na,1,1,1\n", "t.csv:1: two columns are called 'seed'"},
        {"t.csv", head, "t.csv:1: there are no rows"},
        {"t.csv", "", "t.csv: the file is empty"},
        {"t.csv", "\xef\xbb\xbf", "t.csv:1: there are no rows"},
        {"t.csv", head + good + "\nb,1,1\n", "t.csv:3: the line is empty"},
        {"t.txt", head + good, "t.txt: its ending must say how it is written: .csv, .tsv or .jsonl"},
        {"t.csv", "seed,a,b\n1,,\n", "t.csv: there are no values", nothing},
        {"t.csv", "seed,a,b\n1,1,2\n2,1,x\n", "t.csv:3: value of 'b': 'x' is no number", nothing},
        {"t.csv", "seed,a,b\n1,1,2\n1,2,3\n", "t.csv:3: 'a', seed 1, is there twice", nothing},
        {"t.csv", "Step,a-1 - loss,a - loss\n0,1,1\n", "t.csv:2: the run 'a' does not end in its seed"},
        {"t.csv", "Step,a-1 - loss,a_1 - loss\n0,1,1\n", "t.csv:2: 'a', seed 1, has step 0 after step 0"},
        {"t.csv", "Step,a-1 - loss\n0,1\n0,2\n", "t.csv:3: 'a', seed 1, has step 0 after step 0"},
        {"t.csv", "Step,a-1 - loss,a-1 - loss\n0,1,1\n", "t.csv:1: two columns are called 'a-1 - loss'"},
        {"t.jsonl", object + "\n[1, 2]\n", "t.jsonl:2: the line is no JSON object"},
        {"t.jsonl", object + "\n{\"arm\": \n", "t.jsonl:2: the line is not JSON"},
        {"t.jsonl", object + "\n{\"arm\": \"b\", \"loss\": 1}\n", "t.jsonl:2: seed: '' is no whole number from 0 on"},
        {"t.jsonl", object + "\n{\"arm\": \"b\", \"seed\": 2, \"loss\": [1, 2]}\n", "t.jsonl:2: loss of 'b': '' is no number"},
        {"t.jsonl", object + "\n{\"arm\": \"b\", \"seed\": 2.5, \"loss\": 1}\n", "t.jsonl:2: seed: '2.5' is no whole number from 0 on"},
        {"t.jsonl", object + "\n{\"arm\": \"b\", \"seed\": 2, \"loss\": null}\n", "t.jsonl:2: loss of 'b': '' is no number"},
        {"t.jsonl", object + "\n{\"arm\": \"b\", \"seed\": 2, \"loss\": 1, \"loss\": 2}\n", "t.jsonl:2: the line names \"loss\" twice"},
        {"t.jsonl", object + "\n\n" + object + "\n", "t.jsonl:2: the line is empty"},
    };
    for (auto const& each : tables) {
      CAPTURE(each.content);
      auto const said = refused(each.file, each.content, each.ask);
      CHECK_MESSAGE(said.starts_with(each.message), said, " should say: ", each.message);
      CHECK(said.find('\n') == said.npos);
    }
  }
}
