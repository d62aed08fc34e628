// Drawing by gnuplot: without it, with one that hangs, and with names that mean something to it.

#include <csignal>
#include <thread>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "experiments/program/failure.hpp"
#include "experiments/program/system.hpp"
#include "nn/files/utf8.hpp"
#include "tests/environment.hpp"
#include "tests/experiments/finished_ablation.hpp"
#include "tests/experiments/said.hpp"

TEST_SUITE("gnuplot") {
  using namespace heed;
  using Json = test::OrderedJson;
  using test::field, test::Finished, test::gnuplot_is_there, test::has, test::plot, test::reported;
  namespace fs = std::filesystem;

  TEST_CASE_FIXTURE(test::InFolder, "figures of names that mean something to gnuplot or to a file system") {
    if (!gnuplot_is_there()) return;
    Json summary{{"ablation", "x"}, {"metric", "../a/b\xc3\xa9"}, {"seeds", {1, 2}}, {"baseline", "'plain'"}, {"arms", Json::array()}};
    std::string csv = "arm,seed,step,metric,value\n";
    for (auto const* name : {"'plain'", "50% of \"it\"", "'@x `date`\\\\"}) {
      summary["arms"].push_back({{"name", name}, {"values", {{"1", 2.0}}}, {"mean", 2.0}});
      if (*name != '\'' || name[1] == '@') summary["arms"].back()["difference"] = {{"mean", 0.1}, {"interval", {0.05, 0.4}}, {"p", 0.25}};
      for (int seed = 1; seed <= 2; ++seed)
        for (int step = 0; step <= 40; step += 10)
          csv += fmt::format("{},{},{},../a/b\xc3\xa9,{}\n{},{},{},probe.\xff/x.layer0,1.5\n", field(name), seed, step,
                             3 - 0.01 * step + seed, field(name), seed, step);
    }
    test::put(folder / "summary.json", summary.dump());
    test::put(folder / "results.csv", csv);
    auto const html = reported(folder.path());
    CHECK(!has(html, "is missing"));
    CHECK(valid_utf8(html) == html);
    for (char const* name : {"differences", "..-a-b--", "difference_curves", "probe_--x"}) {
      std::string file = name;
      std::ranges::replace(file, '.', '_');
      CAPTURE(file);
      auto const svg = test::get(folder / ("figures/" + file + ".svg"));
      if (file == "differences") test::check_holds(svg, {"50% of \"it\"", "[+0.05, +0.40]"});
      CHECK(has(svg, "'@x `date`\\\\"));
    }
  }

  TEST_CASE("without gnuplot the report says how to get it") {
    Finished const ablation;
    test::Environment const path("PATH", ablation.path.string());
    auto const html = ablation.report();
    CHECK(has(html, "apt-get install gnuplot-nox"));
    CHECK(!has(html, "<figure"));
    CHECK(has(html, "2.1200"));
  }

  TEST_CASE("without gnuplot a report of the same results that has figures stays") {
    if (!gnuplot_is_there()) return;
    Finished const ablation;
    auto const rich = ablation.report();
    auto const together = ablation.path / "all/report.html";
    write_report(std::vector<fs::path>{ablation.path}, together, true);
    auto const both = test::get(together);
    std::optional<test::Environment> path(std::in_place, "PATH", ablation.path.string());
    auto const after = ablation.report();
    write_report(std::vector<fs::path>{ablation.path}, together, true);
    auto const both_after = test::get(together);
    fs::last_write_time(ablation.path / "summary.json", fs::file_time_type::clock::now() + std::chrono::hours(1));  // a copied folder
    auto const copied = ablation.report();
    auto const summary = test::get(ablation.path / "summary.json");
    test::put(ablation.path / "summary.json", summary + "\n");
    auto const renewed = ablation.report();  // of other results
    path.reset();
    CHECK(after == rich);
    CHECK(both_after == both);
    CHECK(copied == rich);
    CHECK(!has(renewed, "<figure"));
    CHECK(has(ablation.report(), "<figure"));
  }

  TEST_CASE_FIXTURE(test::InFolder, "a gnuplot that hangs is ended: by a bound, and by the first signal that is noted") {
    test::put(folder / "gnuplot", "#!/bin/sh\ntrap '' INT TERM HUP\nwhile :; do /bin/sleep 0.1; done\n");
    REQUIRE(::chmod((folder / "gnuplot").c_str(), 0755) == 0);
    std::vector<Plot> const plots{plot()};
    test::Environment const path("PATH", folder.path().string());
    auto const began = std::chrono::steady_clock::now();
    CHECK_THROWS_WITH_AS(draw_plots(plots, std::chrono::milliseconds(200)), "gnuplot did not end within 1 s", Hanging);
    pid_t const child = ::fork();
    if (child == 0) {
      note_signals();
      try {
        draw_plots(plots);
      } catch (Interrupted const&) {
        ::_exit(17);
      }
      ::_exit(1);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    ::kill(child, SIGTERM);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WEXITSTATUS(status) == 17);
    CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(20));
  }

  TEST_CASE("TMPDIR that is no folder: figures are drawn even so") {
    if (!gnuplot_is_there()) return;
    Finished const ablation;
    for (auto const& wrong : {ablation.path / "gone", ablation.path / "summary.json"}) {
      auto const html = [&] {
        test::Environment const there("TMPDIR", wrong.string());
        return ablation.report();
      }();
      CHECK(has(html, "<figure"));
      CHECK(!has(html, "is missing"));
    }
  }

  TEST_CASE_FIXTURE(test::InFolder, "temporary files of a process that was killed while it drew go a day later, with the next figures") {
    if (!gnuplot_is_there()) return;
    auto const left = folder / "heed-figures-abcdef", drawing = folder / "heed-figures-ghijkl", others = folder / "figures";
    for (auto const& path : {left, drawing, others}) {
      fs::create_directory(path);
      test::put(path / "0.svg", "<svg");
    }
    auto const now = fs::file_time_type::clock::now();
    for (auto const& path : {left, others}) fs::last_write_time(path, now - std::chrono::hours(25));
    fs::last_write_time(drawing, now - std::chrono::hours(23));
    {
      test::Environment const there("TMPDIR", folder.path().string());
      REQUIRE(draw_plots({plot()}));
    }
    CHECK(folder.names() == std::vector<std::string>{"figures", "heed-figures-ghijkl"});
  }

  TEST_CASE("every text in a figure is XML: what ends a section, and what XML has no place for") {
    if (!gnuplot_is_there()) return;
    for (std::string const text : {"a]]>b", "]]>", "]]]]>>", "x\xEF\xBF\xBEy", "x\xEF\xBF\xBFy", "<![CDATA[a]]>", "&amp;]]>\x01\x1B"}) {
      CAPTURE(text);
      auto const commands = fmt::format("set label 1 {} at graph 0.5, graph 0.5\nset xtics ({} 0)\nset title {}\nplot x title {}\n",
                                        gnuplot_text(text), gnuplot_tick(text), gnuplot_text(text), gnuplot_text(text));
      auto const svg = draw_plots({plot(commands)})->front().svg;
      for (char const* const wrong : {"]]>", "<![CDATA[", "\xEF\xBF\xBE", "\xEF\xBF\xBF"}) CHECK(!has(svg, wrong));
      CHECK(std::ranges::none_of(svg, [](char c) { return static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\t' && c != '\r'; }));
      if (text == "a]]>b") CHECK(has(svg, "a]]&gt;b"));
    }
  }

  TEST_CASE("guides of every panel have their dashes, also beside the border, which has none") {
    if (!gnuplot_is_there()) return;
    Panel const panel{.x = axis_over(Range{0, 1}), .y = axis_over(Range{0, 1}), .guides = {{.at = 0.5, .dash = 2}}};
    auto const drawn = draw({{.name = "guides", .title = "Guides", .panels = {panel, panel, panel}, .across = 3}});
    auto const& svg = drawn->front().svg;
    std::size_t dashed = 0;
    for (auto at = svg.find("stroke-dasharray"); at != svg.npos; at = svg.find("stroke-dasharray", at + 1)) ++dashed;
    CHECK(dashed == 3);
  }

  TEST_CASE("a figure that gnuplot refuses is an error in its words") {
    if (gnuplot_is_there()) CHECK_THROWS_WITH_AS(draw_plots({plot("plot nonsense(\n")}), doctest::Contains("gnuplot: "), Error);
  }
}
