#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/wait.h>

#include "tests/folder.hpp"

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
      put_script(folder / "tools" / "dpkg-query", "shift 3; for p; do printf '%s=installed ' \"$p\"; done\n");
    }
    /// `heed test SUITE` where ctest writes this log and ends with this code.
    std::pair<int, std::string> test_suite(std::string const& suite, std::string const& log, int code) const {
      test::put(folder / "log", log);
      put_script(folder / "tools" / "ctest",
                 fmt::format("case $* in '-C alone -N') echo '  Test #1: alone.golden'; echo '  Test #2: alone.other'; exit 0;; esac\n"
                             "echo 'all tests ran'; cp '{}' Testing/Temporary/LastTest.log; exit {}\n",
                             (folder / "log").string(), code));
      auto const output = (folder / "output").string();
      int const status = std::system(fmt::format("cd '{0}' && PATH='{0}/tools':\"$PATH\" ./heed test {1} > '{2}' 2>&1 < /dev/null",
                                                 folder.path().string(), suite, output)
                                         .c_str());
      return {WEXITSTATUS(status), test::get(output)};
    }
  };

  }  // namespace

  TEST_CASE("the golden suite's line is shown when it passes, and the exit code is ctest's") {
    Launcher const launcher;
    std::string const log = "Output:\ngolden: 63 compared, 0 skipped, worst 0.42\n<end of output>\n";
    auto const [passed, page] = launcher.test_suite("golden", log, 0);
    INFO(page);
    CHECK(passed == 0);
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
}
