#include <sys/resource.h>

#include "experiments/commands/commands.hpp"
#include "experiments/commands/inspect.hpp"
#include "experiments/config/yaml.hpp"
#include "tests/experiments/parsed.hpp"
#include "tests/experiments/said.hpp"
#include "tests/rooms.hpp"

TEST_SUITE("command_line") {
  using namespace heed;
  using test::parsed, test::read, test::refused, test::Words;

  TEST_CASE("a run has a file, keys and switches, in any order") {
    for (auto const& arguments :
         {Words{"run", "a.yaml", "seed=2", "x.y=[1, 2]", "--fresh"}, Words{"run", "--fresh", "a.yaml", "seed=2", "x.y=[1, 2]"},
          Words{"run", "a.yaml", "seed=2", "--fresh", "x.y=[1, 2]"}}) {
      auto const line = parsed(arguments);
      CHECK(line.command == "run");
      auto const run = read<RunOptions>(line);
      CHECK(run.config == "a.yaml");
      CHECK(run.overrides == Words{"seed=2", "x.y=[1, 2]"});
      CHECK(run.fresh);
    }
    CHECK(!read<RunOptions>(Words{"run", "a.yaml", "--resume"}).fresh);
    CHECK(read<RunOptions>(Words{"check", "a.yaml", "name=run"}).overrides == Words{"name=run"});
    CHECK(read<RunOptions>(Words{"check", "run"}).config == "run");
  }

  TEST_CASE("what holds everywhere may stand before and after the command; the last one counts") {
    test::Folder const data;
    auto const folder = data.path().string();
    for (auto const& arguments : {Words{"--output", "o", "--data", folder, "--threads", "3", "--quiet", "run", "a"},
                                  Words{"run", "--output", "o", "--data", folder, "--threads=3", "--quiet", "a"},
                                  Words{"--threads", "7", "--output=o", "run", "a", "--threads", "3", "--data=" + folder, "--quiet"}}) {
      auto const line = parsed(arguments);
      CHECK(line.everywhere.folders.output == "o");
      CHECK(line.everywhere.folders.data == folder);
      CHECK(line.everywhere.threads == 3);
      CHECK(line.everywhere.quiet);
    }
    auto const line = parsed({"sample", "r", "--output", "o"});
    CHECK(read<SampleOptions>(line).folders.output == "o");
    CHECK(line.everywhere.folders.data.empty());
    CHECK(!line.everywhere.threads);
    CHECK(parsed({"list"}).everywhere.folders.output == "runs");
  }

  TEST_CASE("what an evaluation is told") {
    auto const test =
        read<EvaluateOptions>(Words{"evaluate", "r", "--split", "test", "--beam", "5", "--length-penalty", "1", "--metrics", "bleu,loss",
                                    "--batch", "9", "--weights", "last", "--save", "f.csv", "--quiet", "--output", "o"});
    CHECK(test.run == "r");
    CHECK(test.split == "test");
    CHECK(test.search.width == 5);
    CHECK(test.search.length_penalty == 1);
    CHECK(test.metrics == Words{"bleu", "loss"});
    CHECK(test.batch == 9);
    CHECK(test.weights == "last");
    CHECK(test.save == "f.csv");
    CHECK(test.quiet);
    CHECK(test.folders.output == "o");
    CHECK(read<EvaluateOptions>(Words{"evaluate", "r"}).search.width == 1);
    CHECK(!read<EvaluateOptions>(Words{"evaluate", "r"}).metrics);
  }

  TEST_CASE("samples: numbers, and prompts of any look") {
    auto const line = parsed({"sample",  "runs/a", "--tokens", "7", "--count",  "2",        "--temperature", "0.5", "--top-k",  "3",
                              "--top-p", ".9",     "--seed",   "4", "--prompt", "[ a, b ]", "two words",     "",    "--prompt", "-x"});
    CHECK(line.command == "sample");
    auto const& options = read<SampleOptions>(line);
    CHECK(options.run == "runs/a");
    CHECK(options.tokens == 7);
    CHECK(options.count == 2);
    CHECK(options.sampling.temperature == 0.5);
    CHECK(options.sampling.top_k == 3);
    CHECK(options.sampling.top_p == 0.9);
    CHECK(options.seed == 4);
    CHECK(options.prompts == Words{"[ a, b ]", "two words", "", "-x"});
    CHECK(read<SampleOptions>(Words{"sample", "--prompt", "x", "r"}).run == "r");
    CHECK(read<SampleOptions>(Words{"sample", "--prompt", "x", "r", "--seed", "2"}).run == "r");
    CHECK(read<SampleOptions>(Words{"sample", "--prompt", "x", "r", "--seed", "2"}).prompts == Words{"x"});
    CHECK(read<SampleOptions>(Words{"sample", "r", "--precision", "bfloat16"}).precision == "bfloat16");
    CHECK(!read<SampleOptions>(Words{"sample", "r"}).tokens);
  }

  TEST_CASE("tokens: a text, and a vocabulary that is there or is trained") {
    auto const line = parsed({"tokenize", "t.txt", "--vocabulary", "v", "--ids", "o.bin", "--special", "--quiet", "--data", "."});
    CHECK(line.command == "tokenize");
    CHECK(read<TokenizeOptions>(line).file == "t.txt");
    CHECK(read<TokenizeOptions>(line).vocabulary == "v");
    CHECK(read<TokenizeOptions>(line).ids == "o.bin");
    CHECK(read<TokenizeOptions>(line).special);
    CHECK(read<TokenizeOptions>(line).quiet);
    CHECK(!read<TokenizeOptions>(line).train);
    CHECK(read<TokenizeOptions>(line).folders.data == ".");
    for (auto const& arguments :
         {Words{"tokenize", "t.txt", "--train", "8000", "--output", "o"}, Words{"--output", "o", "tokenize", "t.txt", "--train", "8000"}}) {
      CHECK(read<TokenizeOptions>(arguments).train == 8000);
      CHECK(read<TokenizeOptions>(arguments).folders.output == "o");
    }
    CHECK(refused({"tokenize"}) == "tokenize: FILE is required (see heed --help)");
    CHECK(refused({"tokenize", "t"}) == "tokenize: --vocabulary or --train is required (see heed --help)");
    CHECK(refused({"tokenize", "t", "--train", "300"}) == "--output: is needed: the folder for the vocabulary");
    CHECK(refused({"tokenize", "t", "--train", "300", "--vocabulary", "v"}) ==
          "--train: trains a vocabulary, but --vocabulary names an existing one");
    for (std::string const size : {"256", "1e3", "", "-1", "many", "10000001"})
      CHECK(refused({"tokenize", "t", "--train", size, "--output", "o"}).find("--train: wants an integer ≥ 257") == 0);
    CHECK(refused({"tokenize", "t", "--vocabulery", "v"}) == "--vocabulery: there is no such option; did you mean '--vocabulary'?");
  }

  TEST_CASE("inspections: a run, a text of any look, and where the weights go") {
    auto const line = parsed({"inspect", "runs/a", "--text", "-x [MASK]", "--save", "w.npz", "--output", "o", "--quiet"});
    CHECK(line.command == "inspect");
    CHECK(read<InspectOptions>(Words{"inspect", "r", "--text", "x", "--target", "y", "--beam", "3"}).target == "y");
    CHECK(read<InspectOptions>(Words{"inspect", "r", "--text", "x", "--beam", "3"}).beam.width == 3);
    CHECK(read<InspectOptions>(line).run == "runs/a");
    CHECK(read<InspectOptions>(line).text == "-x [MASK]");
    CHECK(read<InspectOptions>(line).save == "w.npz");
    CHECK(read<InspectOptions>(line).folders.output == "o");
    CHECK(read<InspectOptions>(line).quiet);
    CHECK(read<InspectOptions>(Words{"inspect", "--text", "x", "r"}).run == "r");
    CHECK(read<InspectOptions>(Words{"inspect", "r", "--row", "3"}).row == 3);
    CHECK(refused({"inspect", "r"}) == "inspect: --text or --row is required (see heed --help)");
    CHECK(refused({"inspect", "--text", "x"}) == "inspect: RUN is required (see heed --help)");
  }

  TEST_CASE("pages") {
    auto const help = parsed({}).page;
    test::check_holds(
        help, {"usage: heed COMMAND", "\n  run ", "\n  check ", "\n  sample ", "\n  list ", "--output DIR", "--threads N", "examples:"});
    for (char const* word : {"--help", "help"}) CHECK(parsed({word}).page == help);
    for (std::string const command : {"run", "check", "sample", "inspect", "list"}) {
      auto const page = parsed({command, "--help"}).page;
      test::check_holds(page, {"usage: heed " + command, "--output DIR"});
      CHECK(parsed({"help", command}).page == page);
    }
    auto const versions = parsed({"--version"}).page;
    CHECK(versions.starts_with(version()));
    test::check_holds(versions, {"compiler ", "xtensor ", "xsimd ", "OpenBLAS ", "processor ", "system "});
    CHECK(parsed({"list", "data"}).command == "list");
  }

  TEST_CASE("threads that the system refuses are an error that says how many") {
    auto const few = [] {
      ::setenv("OMP_NUM_THREADS", "1", 1);
      rlimit const limit{rlim_t{2} << 30, rlim_t{2} << 30};
      ::setrlimit(RLIMIT_AS, &limit);  // stacks of 8 MB
    };
    test::check_ends(test::run_heed({"check", "configs/gpt/grammar.yaml", "--threads", "1000"}, few), 1,
                     {"heed: 1000 threads cannot be started, only "});
  }

  TEST_CASE_FIXTURE(test::InFolder, "the command comes first, then the file, then what changes it") {
    test::put(folder / "good.yaml", "");
    auto const good = (folder / "good.yaml").string();
    for (char const* command : {"run", "check", "plan"}) {
      CAPTURE(command);
      CHECK(refused({command, "train.steps=5", good}) ==
            fmt::format("train.steps=5: the file comes first, then its changes: heed {} {} train.steps=5", command, good));
      CHECK(refused({command, "train.steps=5", "seed=2"}) ==
            fmt::format("train.steps=5: the file comes first, then its changes: heed {} FILE train.steps=5", command));
      CHECK(refused({good, command}) == fmt::format("{0}: the command comes first: heed {1} {0}", good, command));
      CHECK(refused({"--output", "o", "--quiet", good, command, "seed=2"})
                .ends_with(fmt::format("the command comes first: heed {} {}", command, good)));
      CHECK(refused({"seed=2", command, good}) == fmt::format("seed=2: the command comes first: heed {} seed=2", command));
    }
    CHECK(refused({"grammar", "sample"}) == "grammar: the command comes first: heed sample grammar");
    CHECK(refused({good}) == fmt::format("{0}: is a file, and a command is missing before it: heed run {0}", good));
    test::put(folder / "a=b.yaml", "");
    CHECK(read<RunOptions>(Words{"run", (folder / "a=b.yaml").string()}).config == folder / "a=b.yaml");
  }

  TEST_CASE("what cannot be meant is refused, with the nearest that can") {
    std::string const commands = std::string(" (there are run, plan, check, watch, report, evaluate, predict, sample, ") +
                                 (test::has_room("translation") ? "translate, " : "") + "export, inspect, tokenize, " +
                                 (test::has_room("bench") ? "bench, " : "") + "compare, " + (test::has_room("judge") ? "judge, " : "") +
                                 (test::has_room("claims") ? "claims, " : "") + "schema, list)" + built_without();
    CHECK(refused({"sampel", "x"}) == "sampel: there is no such command; did you mean 'sample'?" + commands);
    CHECK(refused({"train", "x"}) == "train: there is no such command" + commands);
    CHECK(refused({"--quiet"}).find("a command is missing") != std::string::npos);
    CHECK(refused({"run"}) == "run: CONFIG is required (see heed --help)");
    CHECK(refused({"run", "a", "--fersh"}) == "--fersh: there is no such option; did you mean '--fresh'?");
    CHECK(refused({"--ouput", "x", "list"}) == "--ouput: there is no such option; did you mean '--output'?");
    CHECK(refused({"run", "a", "--train.lr=3"}) ==
          "--train.lr: there is no such option (keys of the configuration are written without dashes: train.lr=value)");
    CHECK(refused({"run", "a", "--fresh", "--resume"}).find("excludes") != std::string::npos);
    CHECK(refused({"list", "data", "text", "models"}) == "models: is one argument too many (see heed list --help)");
    CHECK(refused({"sample"}) == "sample: RUN is required (see heed sample --help)");
    CHECK(refused({"sample", "--prompt", "x"}) == "sample: RUN is required (see heed sample --help)");
    CHECK(refused({"sample", "r", "--seed"}) == "--seed: a value is missing");
    CHECK(refused({"sample", "r", "--precision", "float16"}) == "--precision: wants float32 or bfloat16, but found 'float16'");
    CHECK(refused({"sample", "r", "--tokens", "1e3"}) == "--tokens: wants an integer ≥ 0 and ≤ 1000000000, but found '1e3'");
    CHECK(refused({"sample", "r", "--temperature", "-1"}).starts_with("--temperature: wants a number ≥ 0"));
    CHECK(refused({"sample", "r", "--temperature", "nan"}).starts_with("--temperature: wants a number"));
    CHECK(refused({"sample", "r", "--top-p", "1.1"}).starts_with("--top-p: wants a number"));
    CHECK(refused({"sample", "r", "--top-k", "0"}).starts_with("--top-k: wants an integer ≥ 1"));
    CHECK(refused({"list", "--threads", "0"}).starts_with("--threads: wants an integer ≥ 1"));
    CHECK(refused({"watch", "a", "--jobs", "3"}) == "--jobs: there is no such option of watch; run and plan" +
                                                        std::string(test::has_room("judge") ? " and judge" : "") +
                                                        (test::has_room("claims") ? " and claims" : "") + " have it");
    CHECK(refused({"check", "a.yaml", "--fresh"}) == "--fresh: there is no such option of check; run has it");
    for (char const* command : {"run", "evaluate", "sample"})
      for (char const* option : {"--gpu", "--cuda", "--device=0"})
        CHECK(refused({command, "a", option}).find("heed runs on CPUs only") != std::string::npos);
    CHECK(refused({"--gpu", "run", "a"}).find("heed runs on CPUs only") != std::string::npos);
    CHECK(refused({"list", "--data", "/no/such/folder"}) == "--data: there is no folder '/no/such/folder'");
  }
}
