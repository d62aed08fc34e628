#include "tests/experiments/said.hpp"

// The launcher, in a folder where nothing is to be built: its tools are scripts that do what the test says.

TEST_SUITE("launcher") {
  using namespace heed;
  using test::check_ends;
  namespace fs = std::filesystem;

  namespace {

  void put_script(fs::path const& path, std::string const& lines) {
    test::put(path, "#!/bin/sh\n" + lines);
    fs::permissions(path, fs::perms::owner_all);
  }

  /// A line of shell, all of whose output goes to a file.
  test::Outcome ended(std::string const& line, fs::path const& output) {
    int const status = std::system(fmt::format("{} > '{}' 2>&1 < /dev/null", line, output.string()).c_str());
    return {WEXITSTATUS(status), "", test::get(output)};
  }

  struct Launcher {
    test::Folder folder;

    Launcher() {
      fs::create_directories(folder / "tools");
      fs::create_directories(folder / "build/release/Testing/Temporary");
      fs::copy_file("heed", folder / "heed");
      put_script(folder / "tools" / "cmake", "touch build/release/build.ninja\n");
      put_script(folder / "tools" / "ninja", "exit 0\n");
      put_script(folder / "tools" / "dpkg-query", "shift 3; for p; do printf '%s:all=installed ' \"$p\"; done\n");
    }
    /// What `heed ARGUMENTS` prints, and how it ends, with these folders of tools.
    test::Outcome heed(std::string const& arguments, std::string const& path) const {
      return ended(fmt::format("cd '{}' && PATH={} /bin/bash ./heed {}", folder.path().string(), path, arguments), folder / "output");
    }
    /// Where there is no apt-get: what any system has, and these besides.
    test::Outcome elsewhere(std::string const& arguments, std::vector<std::string> const& besides) const {
      auto const tools = folder / "elsewhere";
      fs::remove_all(tools);
      fs::create_directories(tools);
      for (std::string const tool : {"bash", "cat", "cksum", "cut", "dirname", "grep", "head", "mkdir", "mv", "readlink", "rm", "sed",
                                     "sleep", "tail", "tee", "touch", "uname", "ln"})
        fs::create_symlink("/usr/bin/" + tool, tools / tool);
      for (auto const& tool : besides) fs::create_symlink(folder / "tools" / tool, tools / tool);
      return heed(arguments, "'" + tools.string() + "'");
    }
    /// `heed test SUITE` where ctest writes this log and ends with this code.
    test::Outcome test_suite(std::string const& suite, std::string const& log, int code) const {
      test::put(folder / "log", log);
      put_script(folder / "tools" / "ctest",
                 fmt::format("case $* in '-C alone -N') echo '  Test #1: alone.golden'; echo '  Test #2: alone.other'; exit 0;; esac\n"
                             "echo 'all tests ran'; cp '{}' Testing/Temporary/LastTest.log; exit {}\n",
                             (folder / "log").string(), code));
      return heed("test " + suite, "'" + (folder / "tools").string() + "':\"$PATH\"");
    }
  };

  }  // namespace

  TEST_CASE_FIXTURE(Launcher, "the golden suite's line is shown when it passes, and the exit code is ctest's") {
    std::string const log = "Output:\ngolden: 63 compared, 0 skipped, worst 0.42\n<end of output>\n";
    check_ends(test_suite("golden", log, 0), 0, {"all tests ran\ngolden: 63 compared, 0 skipped, worst 0.42\n"});
    test::check_holds(test_suite("", log, 0).errors, {"\ngolden: 63 compared"});
    CHECK(test_suite("golden", log, 8).code == 1);
    CHECK(test_suite("other", "Output:\n", 0).errors.find("golden: ") == std::string::npos);
    check_ends(test_suite("goldn", log, 0), 2, {"there is no suite goldn; there are golden other"});
  }

  TEST_CASE_FIXTURE(Launcher, "a folder that was configured by hand is known from its first build on") {
    test::put(folder / "build/release/build.ninja", "");
    CHECK(test_suite("golden", "Output:\n", 0).code == 0);
    CHECK(fs::exists(folder / "build/release/machine"));
  }

  TEST_CASE_FIXTURE(Launcher, "where there is no terminal a long build says how far it is, and a short one nothing") {
    for (auto const& [steps, lines] : {std::pair{40, std::size_t{10}}, {8, std::size_t{0}}}) {
      put_script(folder / "tools" / "ninja", fmt::format("for i in $(seq 1 {0}); do echo \"[$i/{0}] Building\"; done\n", steps));
      auto const page = test_suite("golden", "Output:\n", 0).errors;
      INFO(page);
      CHECK(test::occurrences(page, "heed: building: ") == lines);
    }
  }

  TEST_CASE_FIXTURE(Launcher, "without apt-get it says the one line that installs what is missing, by what the system has") {
    for (auto const& [manager, line] : {std::pair<std::string, std::string>{"brew", "\n  brew install cmake ninja "},
                                        {"dnf", "\n  sudo dnf install gcc-c++ cmake ninja-build "},
                                        {"pacman", "\n  sudo pacman -S --needed gcc cmake ninja "},
                                        {"conda", "\n  conda install -c conda-forge cxx-compiler cmake ninja "}}) {
      put_script(folder / "tools" / manager, "exit 1\n");
      auto const outcome = elsewhere("list", {manager});
      check_ends(outcome, 2, {line});
      CHECK(outcome.errors.starts_with("heed: this system has no apt-get"));
    }
    check_ends(elsewhere("list", {}), 2, {"  arrays and matrix products: libxtensor-dev "});
  }

  TEST_CASE_FIXTURE(Launcher, "without apt-get what cmake finds missing or too old is named, and after it the line") {
    fs::remove(folder / "build/release/build.ninja");
    put_script(folder / "tools" / "cmake",
               "echo '-- found'; echo 'CMake Error at CMakeLists.txt:1 (message):'; echo '  xsimd 7 is too old'; exit 1\n");
    put_script(folder / "tools" / "pacman", "exit 1\n");
    auto const outcome = elsewhere("list", {"cmake", "ninja", "pacman"});
    check_ends(outcome, 2, {"\n  sudo pacman -S "});
    CHECK(outcome.errors.starts_with("CMake Error at CMakeLists.txt:1 (message):\n  xsimd 7 is too old\n"));
  }

  TEST_CASE_FIXTURE(Launcher, "of a build that fails: the first error, and the versions that were compiled with and are known to work") {
    test::put(folder / "build/release/versions.txt", "xsimd 15 is newer than 14.3\nknown to work: xsimd 8.1 to 14.3\n");
    put_script(folder / "tools" / "ninja",
               "echo '[1/9] Building'; echo 'FAILED: a.o'; echo 'In file included from z:'; echo 'a.cpp:3:1: error: no hadd'\n"
               "for i in $(seq 99); do echo \"note: candidate $i\"; done; echo 'b.cpp:7:1: error: another'; exit 1\n");
    auto const outcome = heed("list", "'" + (folder / "tools").string() + "':\"$PATH\"");
    check_ends(outcome, 1,
               {"a.cpp:3:1: error: no hadd\nnote: candidate 1\n",
                "heed: xsimd 15 is newer than 14.3\nheed: known to work: xsimd 8.1 to 14.3\nheed: the build failed; all of it: "});
    for (char const* const later : {"candidate 20", "error: another"}) CHECK(outcome.errors.find(later) == std::string::npos);
  }

  TEST_CASE("README's page of versions is the one that cmake holds libraries against") {
    std::string const readme = test::get("README.md");
    int rows = 0;
    for (auto const& line : test::lines_of(test::get("autograd/versions.cmake"))) {
      if (!line.starts_with("  \"")) continue;
      auto words = test::split_words(line.substr(3));  // name, oldest, newest
      if (words.at(2) == "-") continue;
      if (words[0] == "GNU") words[0] = "GCC";
      test::check_holds(readme, {fmt::format("| {} | {} | {} |\n", words[0], words[1], words[2])});
      ++rows;
    }
    CHECK(rows > 10);
  }

  TEST_CASE_FIXTURE(test::InFolder, "cmake refuses a library that is too old, and says of one that is newer than any tried that it is") {
    fs::create_directories(folder / "include/xsimd/config");
    auto const configured = [&](int major) {
      test::put(folder / "include/xsimd/config/xsimd_config.hpp",
                fmt::format("#define XSIMD_VERSION_MAJOR {}\n#define XSIMD_VERSION_MINOR 4\n#define XSIMD_VERSION_PATCH 8\n", major));
      fs::remove_all(folder / "build");
      return ended(fmt::format("cmake -S . -B '{0}/build' -G Ninja -DHEED_PROGRAM=OFF -DCMAKE_CXX_FLAGS='-isystem {0}/include'",
                               folder.path().string()),
                   folder / "output");
    };
    check_ends(configured(7), 1, {"  xsimd 8.1 to ", (folder / "include/xsimd/config/xsimd_config.hpp").string() + " is too old"});
    check_ends(configured(99), 0);
    CHECK(test::get(folder / "build/versions.txt").starts_with("xsimd 99.4.8 is newer than "));
  }
}
