// Every command in the README files runs: the same command with fewer steps and seeds and a smaller model, in a folder of its own.

#include <cctype>

#include "tests/experiments/page_commands.hpp"
#include "tests/rooms.hpp"

TEST_SUITE("manuals") {
  using namespace heed::test;

  namespace {

  std::vector<std::string> const manuals{"README.md",
                                         "experiments/README.md",
                                         "experiments/ablation.md",
                                         "experiments/training.md",
                                         "experiments/data.md",
                                         "experiments/claims.md",
                                         "experiments/metrics.md",
                                         "experiments/reading.md",
                                         "experiments/clusters.md",
                                         "nn/README.md",
                                         "autograd/README.md",
                                         "configs/README.md",
                                         "tests/README.md"};

  /// What makes the run of a file short, by what the file describes.
  std::vector<std::string> shortened(std::string const& file) {
    std::string const text = get(file);
    auto const has = [&](char const* part) { return text.find(part) != std::string::npos; };
    if (has("kind: softmax_scaling")) return {"study.precision=0.3", "study.d_k=[2, 4]", "study.keys=[4]"};
    if (has("kind: normalisers")) return {"study.samples=100"};
    if (has("kind: worked_example")) return {};
    std::vector<std::string> changes{"train.steps=2", "train.evaluate.batches=1"};
    if (has("\nablation:") || text.starts_with("ablation:")) changes.emplace_back("seeds=2");
    return changes;
  }

  /// A page without its blocks of code.
  std::string prose(std::string const& manual) {
    std::string text;
    bool code = false;
    for (auto const& line : lines_of(get(manual))) {
      if (line.starts_with("```")) code = !code;
      if (!code) text += line + '\n';
    }
    return text;
  }

  /// Its headings as links have them: in lower case, hyphens for blanks, without punctuation.
  std::set<std::string> anchors(std::string const& manual) {
    std::set<std::string> found;
    for (auto const& line : lines_of(prose(manual))) {
      if (!line.starts_with('#')) continue;
      std::string anchor;
      for (char const c : line.substr(line.find(' ') + 1)) {
        auto const byte = static_cast<unsigned char>(c);
        if (c == ' ') {
          anchor += '-';
        } else if (byte >= 128 || std::isalnum(byte) != 0 || c == '-' || c == '_') {
          anchor += static_cast<char>(std::tolower(byte));
        }
      }
      found.insert(anchor);
    }
    return found;
  }

  }  // namespace

  TEST_CASE_FIXTURE(InFolder, "every command of the README files runs, or says why the tests leave it out") {
    int run = 0;
    for (auto const& manual : manuals)
      for (auto const& command : commands(manual)) {
        CAPTURE(command.location);
        if (auto const reason = command.comment.find("not tested: "); reason != std::string::npos) {
          CHECK(command.comment.size() > reason + std::string("not tested: ").size() + 8);
          continue;
        }
        std::vector<std::string> arguments(command.words.begin() + 1, command.words.end());
        REQUIRE(!arguments.empty());
        if (arguments[0] == "test" || arguments[0] == "build") continue;  // the launcher's, by which this test runs
        for (auto& argument : arguments)
          if (argument.starts_with("runs/")) argument = (folder / argument).string();
        if (arguments[0] == "run") {
          REQUIRE(std::filesystem::exists(arguments[1]));
          arguments = joined(arguments, shortened(arguments[1]));
        }
        if (arguments[0] == "bench") {
          arguments.insert(arguments.end(), {"--seconds", "0.001"});
          if (arguments[1] == "gpt" && std::ranges::find(arguments, "--size") == arguments.end())
            arguments.insert(arguments.end(), {"--size", "tiny"});  // small is a minute, most of it a sample
        }
        bool const trains = arguments[0] == "run" || arguments[0] == "plan",
                   placed = std::ranges::find(arguments, "--output") != arguments.end();
        if (trains && !placed) arguments.insert(arguments.end(), {"--output", (folder / "runs").string()});
        auto const outcome = run_heed(arguments);
        if (outcome.code == 3 && outcome.errors.find("cannot be fetched from") != std::string::npos) {
          MESSAGE(command.location << ": left out, its data cannot be fetched here");
          continue;
        }
        if (is_of_missing_room(outcome.errors)) continue;
        check_ends(outcome, 0);
        ++run;
      }
    CHECK(run > 20);
  }

  TEST_CASE("the functions that a score's formula may use are listed where nn/README sends its reader") {
    std::string const formulas = get("autograd/attention/reverse.hpp"), page = get("autograd/attention/pair_formula.hpp");
    CHECK(get("nn/README.md").find("the functions that a formula may use stand at the top of\n`autograd/attention/pair_formula.hpp`") !=
          std::string::npos);
    auto const top = page.substr(0, page.find("namespace heed"));
    int found = 0;
    for (std::string const begin : {"\nHEED_FUNCTION(", "\nauto "})
      for (auto at = formulas.find(begin); at != std::string::npos; at = formulas.find(begin, at + 1)) {
        auto const first = at + begin.size(), last = formulas.find_first_of(",(", first);
        auto const name = formulas.substr(first, last - first);
        if (name.starts_with("operator")) continue;
        CAPTURE(name);
        CHECK(top.find(name) != std::string::npos);
        ++found;
      }
    CHECK(found >= 12);
  }

  TEST_CASE("a task that is no sequence, as experiments/data.md shows it, is lag.cpp's") {
    std::string const manual = get("experiments/data.md"), source = get("experiments/data/tasks/lag.cpp");
    auto const first = manual.find("struct Lag : Task {");
    REQUIRE(first != std::string::npos);
    CHECK(source.find(manual.substr(first, manual.find("\n```", first) - first)) != std::string::npos);
  }

  TEST_CASE("README fits on a screen for each question") { CHECK(std::filesystem::file_size("README.md") <= 10'000); }

  TEST_CASE("the pages, and the headings of them, that the README files name are there") {
    for (auto const& manual : manuals) {
      std::string const text = prose(manual);
      for (auto at = text.find("]("); at != std::string::npos; at = text.find("](", at + 1)) {
        auto const link = text.substr(at + 2, text.find(')', at) - at - 2);
        if (link.starts_with("http")) continue;
        INFO("manual ", manual, ", link ", link);
        auto const hash = std::min(link.find('#'), link.size());
        auto const path = hash == 0 ? std::filesystem::path(manual) : std::filesystem::path(manual).parent_path() / link.substr(0, hash);
        REQUIRE(std::filesystem::exists(path));
        if (hash < link.size()) CHECK(anchors(path.string()).contains(link.substr(hash + 1)));
      }
    }
  }
}
