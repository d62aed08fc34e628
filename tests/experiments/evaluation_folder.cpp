#include "experiments/report/evaluation_folder.hpp"

#include <fmt/ranges.h>
#include <sys/resource.h>

#include "autograd/error.hpp"
#include "experiments/folder/result_file.hpp"
#include "experiments/metric/evaluated_batch.hpp"
#include "tests/json.hpp"
#include "tests/program.hpp"

// What an evaluation leaves: one folder is one set of options, whole or not at all.

TEST_SUITE("evaluation_folder") {
  using namespace heed;
  namespace fs = std::filesystem;

  namespace {

  using Arguments = std::vector<std::string>;
  using Files = std::map<std::string, std::string>;

  /// A trained run with averaged weights whose targets can be decoded.
  struct Trained {
    Trained() { train(4); }
    void train(int steps) const {
      test::put(folder / "pairs.yaml", fmt::format("name: pairs\n"
                                                   "data: {{kind: pairs, task: {{kind: copy, length: 4}}, validation: 12}}\n"
                                                   "model: {{kind: transformer, layers: 1, heads: 1, width: 8, context: 8}}\n"
                                                   "train: {{steps: {}, batch: 4, ema: 0.9, optimizer: {{lr: 1.0e-2}}}}\n",
                                                   steps));
      test::run_well({"run", folder / "pairs.yaml", "--output", folder.path().string(), "--quiet"});
    }
    Arguments command(Arguments const& more = {}) const { return test::joined({"evaluate", run.string()}, more); }
    void evaluate(Arguments const& more = {}) const { test::run_well(command(more)); }
    test::OrderedJson results(std::string const& name) const { return read_json(run / name / "results.json"); }
    /// The names of all evaluations, and of what was left of one.
    std::set<std::string> evaluations() const {
      std::set<std::string> names;
      for (auto const& entry : fs::directory_iterator(run))
        if (auto const name = entry.path().filename().string(); name.find("evaluation-") != name.npos) names.insert(name);
      return names;
    }

    test::Folder folder;
    fs::path run = folder / "pairs", usual = run / "evaluation-validation";
  };

  Files content_of(fs::path const& folder) {
    Files files;
    for (auto const& entry : fs::directory_iterator(folder)) files[entry.path().filename().string()] = test::get(entry.path());
    return files;
  }

  }  // namespace

  TEST_CASE("what changes the results has a folder of its own, and changes no other's") {
    Trained const trained;
    trained.evaluate();
    auto const usual = content_of(trained.usual);
    CHECK(usual.contains("decoded.txt"));
    trained.evaluate({"--weights", "last"});
    for (char const* penalty : {"0", "0.6", "1"}) trained.evaluate({"--beam", "2", "--length-penalty", penalty});
    trained.evaluate({"--metrics", "decoded.exact,loss"});
    trained.evaluate({"--metrics", "loss"});
    trained.evaluate({"--metrics", "loss", "--weights", "last", "--beam", "2"});  // nothing is decoded
    CHECK(trained.evaluations() == std::set<std::string>{"evaluation-validation", "evaluation-validation-last",
                                                         "evaluation-validation-beam2", "evaluation-validation-beam2-penalty0",
                                                         "evaluation-validation-beam2-penalty1", "evaluation-validation-only-loss",
                                                         "evaluation-validation-only-loss+decoded.exact",
                                                         "evaluation-validation-last-only-loss"});
    CHECK(content_of(trained.usual) == usual);
    CHECK(trained.results("evaluation-validation-last")["weights"] == "last");
    CHECK(trained.results("evaluation-validation-beam2-penalty1")["decoding"]["length_penalty"] == 1);
    CHECK(trained.results("evaluation-validation-beam2")["decoding"]["length_penalty"] == 0.6);
    CHECK(trained.results("evaluation-validation-only-loss")["metrics"].size() == 1);

    // What is usual goes without saying, and rows at once change nothing.
    auto names = Registry<MetricKind>::names();
    // Of groups, which pairs do not tell apart, of other terms, labels and answers, of another suite, and of bytes of a text.
    for (char const* const of_others : {"accuracy.*", "loss_of.*", "f1", "macro_f1", "matthews", "span_exact", "span_f1", "span_best.*",
                                        "lost_answers", "decoded.length"})
      std::erase(names, of_others);
    std::erase_if(names, [](std::string const& name) { return name.ends_with("_byte") || name.ends_with("_word"); });
    auto const all = fmt::format("{}", fmt::join(names, ","));
    trained.evaluate({"--metrics", all, "--weights", "average", "--batch", "3", "--length-penalty", "1"});
    CHECK(trained.evaluations().size() == 8);
  }

  TEST_CASE_FIXTURE(Trained, "an older evaluation is replaced with all that is in it, but not where no metric is named") {
    evaluate();
    test::put(usual / "of_step_4.txt", "");
    auto const before = content_of(usual);
    train(8);
    evaluate();
    CHECK(results("evaluation-validation")["step"] == 8);
    auto const after = content_of(usual);
    CHECK(!after.contains("of_step_4.txt"));
    CHECK(after.size() == before.size() - 1);
    test::refuses(command({"--metrics", ""}), 2, {"--metrics", "names no metric", "there are ", "loss", "decoded.exact"});
    test::refuses(command({"--metrics", ","}), 2, {"--metrics", "there is no metric ''"});
    CHECK(content_of(usual) == after);
    CHECK(evaluations().size() == 1);
  }

  TEST_CASE("killed at any moment there is the older evaluation or the new one; the next calls, at once, leave a whole one and no part") {
    Trained const trained;
    trained.evaluate();
    auto const fresh = content_of(trained.usual);
    Files const old{{"decoded.txt", "as it was\n"}, {"results.csv", "as it was\n"}, {"mine.txt", ""}};
    auto const part = trained.run / ".evaluation-validation.part";
    std::size_t kept = 0, replaced = 0;
    for (std::size_t files = 0; files < 6; ++files) {  // there are three; 4: the part is gone, 5: when it has ended
      CAPTURE(files);
      fs::remove_all(trained.usual);
      write_folder(trained.usual, old);
      auto program = std::make_unique<test::Program>(trained.command());
      bool begun = false;
      program->wait_until([&] {
        std::error_code missing;
        begun = begun || fs::exists(part, missing);
        if (files == 5) return false;
        if (files == 4) return begun && !fs::exists(part, missing);
        std::size_t written = 0;
        for (fs::directory_iterator each(part, missing), end; !missing && each != end; each.increment(missing)) ++written;
        return begun && written >= files;
      });
      program.reset();  // kills it
      auto const found = content_of(trained.usual);
      CHECK((found == old || found == fresh));
      ++(found == old ? kept : replaced);
    }
    CHECK(kept > 0);
    CHECK(replaced > 0);
    for (std::size_t const count : {1U, 4U}) {
      std::vector<std::unique_ptr<test::Program>> programs;
      for (std::size_t i = 0; i < count; ++i) programs.push_back(std::make_unique<test::Program>(trained.command()));
      for (auto const& program : programs) CHECK(program->wait().code == 0);
      CHECK(content_of(trained.usual) == fresh);
      CHECK(trained.evaluations() == std::set<std::string>{"evaluation-validation"});
    }
  }

  TEST_CASE_FIXTURE(Trained, "where it cannot be written the table is printed all the same, one line says why, and the older one stays") {
    evaluate();
    auto const fresh = content_of(usual);
    auto const table = test::run_heed(command()).output;
    auto const printed = table.substr(0, table.find("saved in"));
    auto const fails = [&](std::string const& reason, std::function<void()> const& prepare) {
      auto const outcome = test::run_heed(command(), prepare);
      test::check_refused(outcome, 1, {reason, "cannot be written", "--save FILE.csv"});
      CHECK(outcome.output == printed);
    };
    auto const largest = fresh.at("results.json").size();
    REQUIRE(printed.size() < largest);
    test::put(usual / "mine.txt", "");
    auto const before = content_of(usual);
    fails("results.json", [&] {
      rlimit const limit{largest - 1, largest - 1};
      ::setrlimit(RLIMIT_FSIZE, &limit);
    });
    CHECK(content_of(usual) == before);
    CHECK(evaluations().size() == 1);

    fs::remove_all(usual);
    test::put(usual, "mine");
    fails("evaluation-validation: ", {});
    CHECK(test::get(usual) == "mine");
    evaluate({"--save", (folder / "elsewhere.json").string()});
    CHECK(read_json(folder / "elsewhere.json")["step"] == 4);
  }

  TEST_CASE_FIXTURE(test::InFolder, "a folder is made, replaced, and replaced where a part was left or a link leads to it") {
    auto const evaluation = folder / "evaluation-x";
    write_folder(evaluation, {{"a", "1"}, {"b", "2"}});
    CHECK(content_of(evaluation) == Files{{"a", "1"}, {"b", "2"}});
    fs::create_directories(folder / ".evaluation-x.part/deep");
    test::put(folder / ".evaluation-x.part/deep/left", "");
    fs::create_directories(evaluation / "deep");
    write_folder(evaluation, {{"b", "3"}});
    CHECK(content_of(evaluation) == Files{{"b", "3"}});
    write_folder(folder / "evaluation-y", {});
    fs::create_directory_symlink(evaluation, folder / "evaluation-z");
    write_folder(folder / "evaluation-z", {{"c", "4"}});
    CHECK(content_of(folder / "evaluation-z") == Files{{"c", "4"}});
    CHECK(content_of(evaluation) == Files{{"b", "3"}});
    CHECK(folder.names() == Arguments{".evaluation.lock", "evaluation-x", "evaluation-y", "evaluation-z"});
    CHECK_THROWS_AS(write_folder(folder / "missing/\n/evaluation-x/" / std::string(300, 'x'), {}), Error);
  }
}
