#include <sys/wait.h>

#include "tests/folder.hpp"
#include "tests/test.hpp"

// The launcher, in a folder where nothing is to be built: its tools are scripts that do what the test says.

TEST_SUITE("launcher") {
  using namespace heed;
  namespace fs = std::filesystem;

  namespace {

  void put_script(fs::path const& path, std::string const& lines) {
    test::put(path, "#!/bin/sh\n" + lines);
    fs::permissions(path, fs::perms::owner_all);
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
    std::pair<int, std::string> heed(std::string const& arguments, std::string const& path) const {
      auto const output = (folder / "output").string();
      int const status = std::system(
          fmt::format("cd '{}' && PATH={} /bin/bash ./heed {} > '{}' 2>&1 < /dev/null", folder.path().string(), path, arguments, output)
              .c_str());
      return {WEXITSTATUS(status), test::get(output)};
    }
    /// Where there is no apt-get: what any system has, and these besides.
    std::pair<int, std::string> elsewhere(std::string const& arguments, std::vector<std::string> const& besides) const {
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
    std::pair<int, std::string> test_suite(std::string const& suite, std::string const& log, int code) const {
      test::put(folder / "log", log);
      put_script(folder / "tools" / "ctest",
                 fmt::format("case $* in '-C alone -N') echo '  Test #1: alone.golden'; echo '  Test #2: alone.other'; exit 0;; esac\n"
                             "echo 'all tests ran'; cp '{}' Testing/Temporary/LastTest.log; exit {}\n",
                             (folder / "log").string(), code));
      return heed("test " + suite, "'" + (folder / "tools").string() + "':\"$PATH\"");
    }
  };

  }  // namespace

  TEST_CASE("the golden suite's line is shown when it passes, and the exit code is ctest's") {
    Launcher const launcher;
    std::string const log = "Output:\ngolden: 63 compared, 0 skipped, worst 0.42\n<end of output>\n";
    auto const outcome = launcher.test_suite("golden", log, 0);
    auto const& page = outcome.second;
    INFO(page);
    CHECK(outcome.first == 0);
    CHECK(page.find("all tests ran\ngolden: 63 compared, 0 skipped, worst 0.42\n") != std::string::npos);
    CHECK(launcher.test_suite("", log, 0).second.find("\ngolden: 63 compared") != std::string::npos);
    CHECK(launcher.test_suite("golden", log, 8).first == 1);
    CHECK(launcher.test_suite("other", "Output:\n", 0).second.find("golden: ") == std::string::npos);
    auto const [refused, message] = launcher.test_suite("goldn", log, 0);
    CHECK(refused == 2);
    CHECK(message.find("there is no suite goldn; there are golden other") != std::string::npos);
  }

  TEST_CASE("where there is no terminal a long build says how far it is, and a short one nothing") {
    Launcher const launcher;
    for (auto const& [steps, lines] : {std::pair{40, std::size_t{10}}, {8, std::size_t{0}}}) {
      put_script(launcher.folder / "tools" / "ninja", fmt::format("for i in $(seq 1 {0}); do echo \"[$i/{0}] Building\"; done\n", steps));
      auto const page = launcher.test_suite("golden", "Output:\n", 0).second;
      INFO(page);
      std::size_t found = 0;
      for (auto at = page.find("heed: building: "); at != page.npos; at = page.find("heed: building: ", at + 1)) ++found;
      CHECK(found == lines);
    }
  }

  TEST_CASE("without apt-get it says the one line that installs what is missing, by what the system has") {
    Launcher const launcher;
    for (auto const& [manager, line] : {std::pair<std::string, std::string>{"brew", "\n  brew install cmake ninja "},
                                        {"dnf", "\n  sudo dnf install gcc-c++ cmake ninja-build "},
                                        {"pacman", "\n  sudo pacman -S --needed gcc cmake ninja "},
                                        {"conda", "\n  conda install -c conda-forge cxx-compiler cmake ninja "}}) {
      put_script(launcher.folder / "tools" / manager, "exit 1\n");
      auto const outcome = launcher.elsewhere("list", {manager});
      auto const& page = outcome.second;
      INFO(page);
      CHECK(outcome.first == 2);
      CHECK(page.find("heed: this system has no apt-get") == 0);
      CHECK(page.find(line) != page.npos);
    }
    auto const [code, page] = launcher.elsewhere("list", {});
    CHECK(code == 2);
    CHECK(page.find("  arrays and matrix products: libxtensor-dev ") != page.npos);
  }

  TEST_CASE("without apt-get what cmake finds missing or too old is named, and after it the line") {
    Launcher const launcher;
    fs::remove(launcher.folder / "build/release/build.ninja");
    put_script(launcher.folder / "tools" / "cmake",
               "echo '-- found'; echo 'CMake Error at CMakeLists.txt:1 (message):'; echo '  xsimd 7 is too old'; exit 1\n");
    put_script(launcher.folder / "tools" / "pacman", "exit 1\n");
    auto const outcome = launcher.elsewhere("list", {"cmake", "ninja", "pacman"});
    auto const& page = outcome.second;
    INFO(page);
    CHECK(outcome.first == 2);
    CHECK(page.find("CMake Error at CMakeLists.txt:1 (message):\n  xsimd 7 is too old\n") == 0);
    CHECK(page.find("\n  sudo pacman -S ") != page.npos);
  }

  TEST_CASE("of a build that fails: the first error, and the versions that were compiled with and are known to work") {
    Launcher const launcher;
    test::put(launcher.folder / "build/release/versions.txt", "xsimd 15 is newer than 14.3\nknown to work: xsimd 8.1 to 14.3\n");
    put_script(launcher.folder / "tools" / "ninja",
               "echo '[1/9] Building'; echo 'FAILED: a.o'; echo 'In file included from z:'; echo 'a.cpp:3:1: error: no hadd'\n"
               "for i in $(seq 99); do echo \"note: candidate $i\"; done; echo 'b.cpp:7:1: error: another'; exit 1\n");
    auto const outcome = launcher.heed("list", "'" + (launcher.folder / "tools").string() + "':\"$PATH\"");
    auto const& page = outcome.second;
    INFO(page);
    CHECK(outcome.first == 1);
    auto const error = page.find("a.cpp:3:1: error: no hadd\nnote: candidate 1\n");
    CHECK(error != page.npos);
    CHECK(page.find("candidate 20") == page.npos);
    CHECK(page.find("error: another") == page.npos);
    CHECK(page.find("heed: xsimd 15 is newer than 14.3\nheed: known to work: xsimd 8.1 to 14.3\nheed: the build failed; all of it: ") !=
          page.npos);
  }

  TEST_CASE("README's page of versions is the one that cmake holds libraries against") {
    std::string const readme = test::get("README.md");
    std::istringstream lines(test::get("autograd/versions.cmake"));
    int rows = 0;
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("  \"")) continue;
      std::istringstream words(line.substr(3));
      std::string name, oldest, newest;
      words >> name >> oldest >> newest;
      if (newest == "-") continue;
      if (name == "GNU") name = "GCC";
      auto const row = fmt::format("| {} | {} | {} |\n", name, oldest, newest);
      CHECK_MESSAGE(readme.find(row) != readme.npos, row);
      ++rows;
    }
    CHECK(rows > 10);
  }

  TEST_CASE("cmake refuses a library that is too old, and says of one that is newer than any tried that it is") {
    test::Folder const folder;
    fs::create_directories(folder / "include/xsimd/config");
    auto const configured = [&](int major) {
      test::put(folder / "include/xsimd/config/xsimd_config.hpp",
                fmt::format("#define XSIMD_VERSION_MAJOR {}\n#define XSIMD_VERSION_MINOR 4\n#define XSIMD_VERSION_PATCH 8\n", major));
      fs::remove_all(folder / "build");
      int const status =
          std::system(fmt::format("cmake -S . -B '{0}/build' -G Ninja -DHEED_PROGRAM=OFF -DCMAKE_CXX_FLAGS='-isystem {0}/include' > "
                                  "'{0}/output' 2>&1 < /dev/null",
                                  folder.path().string())
                          .c_str());
      return std::pair(WEXITSTATUS(status), test::get(folder / "output"));
    };
    auto const old = configured(7);
    auto const& refused = old.second;
    INFO(refused);
    CHECK(old.first == 1);
    CHECK(refused.find("  xsimd 8.1 to ") != refused.npos);
    CHECK(refused.find((folder / "include/xsimd/config/xsimd_config.hpp").string() + " is too old") != refused.npos);
    auto const young = configured(99);
    INFO(young.second);
    CHECK(young.first == 0);
    CHECK(test::get(folder / "build/versions.txt").starts_with("xsimd 99.4.8 is newer than "));
  }
}
