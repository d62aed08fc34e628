#include "autograd/parallel.hpp"

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/engine.hpp"
#include "tests/test.hpp"

namespace heed {
namespace {

constexpr double costly = 1e5;  // nanoseconds: worth waking the pool

TEST_SUITE("parallel") {
  TEST_CASE("every element is met once, in pieces that begin where they may") {
    for (int const count : {1, 2, 3, 5}) {
      Threads const some(count);
      for (Index const n : {0, 1, 2, 7, 64, 1000})
        for (Index const align : {1, 6, 64})
          for (Cut const cut : {Cut::whole, Cut::fine}) {
            std::vector<std::atomic<int>> met(static_cast<std::size_t>(n));
            std::atomic<int> pieces = 0, misplaced = 0;
            auto const meet = [&](Index begin, Index end) {
              ++pieces;
              if (begin % align != 0 || (end != n && end % align != 0)) ++misplaced;
              for (Index i = begin; i < end; ++i) ++at(met, i);
            };
            parallel_for(n, costly, meet, align, cut);
            CHECK(std::ranges::all_of(met, [](auto const& times) { return times == 1; }));
            CHECK(misplaced == 0);
            if (cut == Cut::whole) CHECK(pieces <= count);
          }
    }
  }

  TEST_CASE("a sweep meets an element after the sweep before did") {
    for (int const count : {1, 2, 3}) {
      Threads const some(count);
      std::vector<Index> sweeps_of(500, 0);
      std::atomic<int> early = 0;
      auto const meet = [&](Index sweep, Index begin, Index end) {
        for (Index i = begin; i < end; ++i)
          if (at(sweeps_of, i)++ != sweep) ++early;
      };
      parallel_sweeps(40, 500, costly, meet, 6);
      CHECK(early == 0);
      CHECK(std::ranges::all_of(sweeps_of, [](Index times) { return times == 40; }));
    }
  }

  TEST_CASE("a thread that is slower is left less to do") {
    Threads const two(2);
    std::vector<std::atomic<int>> done(2);
    auto const work = [&](Index begin, Index end) {
      auto const index = static_cast<std::size_t>(thread_index());
      if (index == 0) std::this_thread::sleep_for(std::chrono::milliseconds(3));
      done[index] += static_cast<int>(end - begin);
    };
    parallel_for(64, costly, work, 1, Cut::fine);
    CHECK(done[0] + done[1] == 64);
    CHECK(done[0] > 0);
    CHECK(done[1] > 2 * done[0]);
  }

  TEST_CASE("an error reaches the caller, and the pool works on") {
    Threads const two(2);
    for (Index const sweeps : {1, 3}) {
      auto const run = [&](bool fails) {
        std::atomic<Index> met = 0;
        auto const work = [&](Index sweep, Index begin, Index end) {
          if (fails && sweep == 0 && begin == 0) throw std::runtime_error("no");
          met += end - begin;
        };
        parallel_sweeps(sweeps, 100, costly, work, 1);
        return met.load();
      };
      CHECK_THROWS_WITH(run(true), "no");
      CHECK(run(false) == 100 * sweeps);
    }
  }

  TEST_CASE("a region inside another runs on the thread that comes to it") {
    Threads const two(2);
    std::atomic<int> elsewhere = 0, met = 0;
    parallel_for(4, costly, [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        int const here = thread_index();
        parallel_for(100, costly, [&](Index from, Index to) {
          if (thread_index() != here) ++elsewhere;
          met += static_cast<int>(to - from);
        });
      }
    });
    CHECK(elsewhere == 0);
    CHECK(met == 400);
  }
}

}  // namespace
}  // namespace heed
