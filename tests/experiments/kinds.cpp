// A kind of model, data, task or view is known by its own file alone: everything else finds it among the declared ones. Rooms know those
// below them.

#include <regex>

#include "experiments/data/open.hpp"
#include "nn/model.hpp"
#include "tests/folder.hpp"

TEST_SUITE("kinds") {
  using namespace heed;
  namespace fs = std::filesystem;

  namespace {

  struct Source {
    std::string path, text;
  };

  std::vector<Source> read_sources(std::vector<std::string> const& folders) {
    std::vector<Source> read;
    for (auto const& folder : folders)
      for (fs::path const& path : fs::recursive_directory_iterator(folder))
        if (path.extension() == ".cpp" || path.extension() == ".hpp") read.push_back({path.generic_string(), test::get(path)});
    return read;
  }

  /// All of the program's own code.
  std::vector<Source> const& sources() {
    static auto const all = read_sources({"autograd", "nn", "experiments"});
    return all;
  }

  std::vector<std::string> included_by(Source const& source) {
    static std::regex const include("#include \"([^\"]+)\"");
    return {std::sregex_token_iterator(source.text.begin(), source.text.end(), include, 1), {}};
  }

  /// Whether a file is named after a kind: nn/models/gpt.cpp, experiments/bench/gpt_and_training.cpp.
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
    for (auto const& choice : {choice_of<DataKind>(), task_choice()})
      for (auto const& option : choice.options) {
        names.insert(option.name);
        auto const settings = option.make();
        for (auto const& field : settings->fields())
          if (auto* const* const tasks = std::get_if<Choice*>(&field.target); tasks != nullptr && field.name == "task")
            for (auto const& task : (*tasks)->options) names.insert(task.name);
      }
    return names;
  }

  /// `set(NAME_OF_ROOM word …)` of experiments/rooms.cmake, by room.
  std::map<std::string, std::vector<std::string>> of_rooms(std::string const& name) {
    std::map<std::string, std::vector<std::string>> all;
    auto const text = test::get("experiments/rooms.cmake");
    std::regex const line("set\\(" + name + "_OF_([a-z]+)([^)]*)\\)");
    for (std::sregex_iterator match(text.begin(), text.end(), line); match != std::sregex_iterator(); ++match)
      all[(*match)[1]] = test::split_words((*match)[2]);
    return all;
  }

  /// The room that a source or a suite is in; "": one that cannot be left out.
  std::string room_of(std::string const& path) {
    static auto const sources_of = of_rooms("SOURCES"), suites_of = of_rooms("SUITES");
    for (auto const& [room, paths] : sources_of)
      for (auto const& each : paths)
        if (path.starts_with(each)) return room;
    for (auto const& [room, suites] : suites_of)
      if (path.starts_with("tests/") && std::ranges::find(suites, fs::path(path).stem().string()) != suites.end()) return room;
    return "";
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
    std::vector<std::string> const rooms{"config",   "data",  "metric", "program", "folder", "exchange", "train",   "report",
                                         "ablation", "judge", "claims", "suite",   "study",  "bench",    "commands"};
    auto const height = [&](std::string const& path) {  // of experiments/ROOM/…
      auto const begin = path.find('/') + 1;
      auto const found = std::ranges::find(rooms, path.substr(begin, path.find('/', begin) - begin));
      CHECK_MESSAGE(found != rooms.end(), path);
      return found - rooms.begin();
    };
    for (auto const& source : sources()) {
      CAPTURE(source.path);
      auto const project = [](std::string const& path) { return path.substr(0, path.find('/')); };
      for (auto const& included : included_by(source)) {
        CAPTURE(included);
        if (project(source.path) == "autograd") CHECK(project(included) == "autograd");
        if (project(source.path) == "nn") CHECK(project(included) != "experiments");
        if (project(source.path) == "experiments" && project(included) == "experiments") CHECK(height(included) <= height(source.path));
      }
    }
  }

  TEST_CASE("nothing outside of a room that can be left out includes it") {
    REQUIRE(of_rooms("SOURCES").size() >= 5);
    CHECK(room_of("experiments/data/pairs/pairs.cpp") == "translation");
    CHECK(room_of("tests/nn/recurrent.cpp") == "recurrent");
    auto const below = of_rooms("NEEDS");
    std::vector<Source> all = sources();
    std::ranges::copy(read_sources({"tests"}), std::back_inserter(all));
    for (auto const& source : all) {
      CAPTURE(source.path);
      auto const here = room_of(source.path);
      for (auto const& included : included_by(source)) {
        auto const room = room_of(included);
        auto const found = below.find(here);
        bool const built_on = found != below.end() && std::ranges::find(found->second, room) != found->second.end();
        CHECK_MESSAGE((room.empty() || room == here || built_on), included << " is of the room " << room);
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
