#include "experiments/program/progress.hpp"

#include <chrono>
#include <thread>

#include <unistd.h>

#include "experiments/config/table.hpp"
#include "tests/folder.hpp"

TEST_SUITE("progress") {
  using namespace heed;
  using namespace std::chrono_literals;

  namespace {

  ProgressState const halfway{
      .title = "tiny", .unit = "steps", .note = "loss 1.92", .total = 2000, .start = 0, .done = 1000, .seconds = 50};

  /// What f writes to standard error.
  template <class F>
  std::string standard_error_of(F const& f) {
    test::Folder const folder;
    std::fflush(stderr);
    int const before = ::dup(STDERR_FILENO);
    auto* const file = std::fopen((folder / "err").c_str(), "w");
    REQUIRE(file != nullptr);
    ::dup2(::fileno(file), STDERR_FILENO);
    f();
    std::fflush(stderr);
    ::dup2(before, STDERR_FILENO);
    ::close(before);
    std::fclose(file);
    return test::get(folder / "err");
  }

  }  // namespace

  TEST_CASE("a bar fits its terminal, and narrow ones have none") {
    CHECK(progress_bar(halfway, 100) == "tiny   50 %  ━━━━━━━━━━━━━━━───────────────  1000/2000 steps  20.0/s  0:50 left  loss 1.92");
    for (std::size_t width = 0; width < 200; ++width) {
      CAPTURE(width);
      auto const bar = progress_bar(halfway, width);
      CHECK(columns(bar) <= width);
      CHECK(bar.empty() == (width < 40));
      if (width >= 40) CHECK(bar.find("1000/2000 steps") != std::string::npos);
    }
  }

  TEST_CASE("rate and time left are of what was done here") {
    auto state = halfway;
    state.start = 900;
    CHECK(progress_line(state) == "tiny: 1000/2000 steps, 50 %, 2.0 steps/s, 8:20 left, loss 1.92");
    state.start = 999;
    CHECK(progress_line(state) == "tiny: 1000/2000 steps, 50 %, 0.02 steps/s, 13:53:20 left, loss 1.92");
    state.start = 1000;  // nothing yet: no rate, no division by zero
    CHECK(progress_line(state) == "tiny: 1000/2000 steps, 50 %, loss 1.92");
    state.total = 0;
    CHECK(progress_line(state) == "tiny: 1000/0 steps, 0 %, loss 1.92");
  }

  TEST_CASE("it is not done before it is done") {
    auto state = halfway;
    state.done = 1999;
    CHECK(progress_line(state).find("99 %") != std::string::npos);
    state.done = 2000;
    CHECK(progress_line(state) == "tiny: 2000/2000 steps, 100 %, 40.0 steps/s, loss 1.92");
  }

  TEST_CASE("in a file: nothing for two seconds, then a line, then none for ten; messages at once") {
    auto const written = standard_error_of([] {
      Progress progress("tiny", 100, 0, false);
      for (int i = 1; i <= 50; ++i) {
        progress.update(i, "loss 1");
        if (i == 10) progress.message("step 10  validation loss 2");
        std::this_thread::sleep_for(50ms);
      }
      progress.finish();
    });
    REQUIRE(written.starts_with("step 10  validation loss 2\ntiny: "));
    CHECK(written.find("/100 steps, ") != std::string::npos);
    CHECK(written.find("\r") == std::string::npos);
    CHECK(std::ranges::count(written, '\n') == 2);
  }

  TEST_CASE("quiet is quiet") {
    auto const written = standard_error_of([] {
      Progress progress("tiny", 100, 0, true);
      progress.update(1, "");
      progress.message("hidden");
    });
    CHECK(written.empty());
  }
}
