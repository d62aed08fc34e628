// A kind of model, data, task or view is known by its own file alone: everything else finds it among the declared ones. Rooms know those
// below them.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "experiments/data/open.hpp"
#include "experiments/data/pairs/pair_task.hpp"
#include "nn/model.hpp"

TEST_SUITE("kinds") {
  using namespace heed;
  namespace fs = std::filesystem;

  namespace {

  struct Source {
    std::string path, text;
  };

  /// All of the program's own code.
  std::vector<Source> const& sources() {
    static auto const all = [] {
      std::vector<Source> read;
      for (auto const* const folder : {"autograd", "nn", "experiments"}) {
        for (auto const& entry : fs::recursive_directory_iterator(folder)) {
          if (entry.path().extension() != ".cpp" && entry.path().extension() != ".hpp") continue;
          std::ostringstream text;
          text << std::ifstream(entry.path()).rdbuf();
          read.push_back({entry.path().generic_string(), text.str()});
        }
      }
      return read;
    }();
    return all;
  }

  /// Whether a file is named after a kind: nn/models/gpt.cpp, experiments/bench/gpt_subject.hpp.
  bool bears(std::string const& path, std::string const& kind) {
    auto const name = fs::path(path).stem().string();
    return name == kind || name.starts_with(kind + "_");
  }

  std::vector<std::string> files_with(std::string const& text, std::string const& kind) {
    std::vector<std::string> found;
    for (auto const& source : sources())
      if (!bears(source.path, kind) && source.text.find(text) != std::string::npos) found.push_back(source.path);
    return found;
  }

  /// Of the kinds of data, tasks and pairs.
  std::set<std::string> data_kinds() {
    std::set<std::string> names;
    for (auto const& choice : {choice_of<DataKind>(), task_choice(), choice_of<PairKind>()})
      for (auto const& option : choice.options) names.insert(option.name);
    return names;
  }

  }  // namespace

  TEST_CASE("no file but its own holds the name of a kind of model") {
    REQUIRE(sources().size() > 100);
    REQUIRE(Registry<ModelKind>::all().size() >= 4);
    for (auto const& kind : Registry<ModelKind>::all()) {
      CAPTURE(kind.name);
      CHECK(files_with('"' + kind.name + '"', kind.name).empty());
      CHECK(files_with("/" + kind.name + ".hpp\"", kind.name).empty());
    }
  }

  TEST_CASE("rooms include those below them alone") {
    std::vector<std::string> const rooms{"config", "data", "metric", "run", "report", "ablation", "study", "bench", "commands"};
    auto const height = [&](std::string const& path) {  // of experiments/ROOM/…
      auto const begin = path.find('/') + 1;
      auto const found = std::ranges::find(rooms, path.substr(begin, path.find('/', begin) - begin));
      CHECK_MESSAGE(found != rooms.end(), path);
      return found - rooms.begin();
    };
    for (auto const& source : sources()) {
      CAPTURE(source.path);
      std::istringstream lines(source.text);
      for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with("#include \"")) continue;
        auto const included = line.substr(10, line.find('"', 10) - 10);
        CAPTURE(included);
        auto const project = [](std::string const& path) { return path.substr(0, path.find('/')); };
        if (project(source.path) == "autograd") CHECK(project(included) == "autograd");
        if (project(source.path) == "nn") CHECK(project(included) != "experiments");
        if (project(source.path) == "experiments" && project(included) == "experiments") CHECK(height(included) <= height(source.path));
      }
    }
  }

  TEST_CASE("nothing asks of which kind data or tasks are") {
    auto const kinds = data_kinds();
    REQUIRE(kinds.size() >= 10);
    for (auto const& kind : kinds) {
      CAPTURE(kind);
      for (auto const* const comparison : {"== ", "!= ", "kind == ", "case "})
        CHECK(files_with(comparison + ('"' + kind + '"'), kind).empty());
      for (auto const* const folder : {"tasks/", "pairs/"}) CHECK(files_with(folder + kind + ".hpp", kind).empty());
    }
  }
}
