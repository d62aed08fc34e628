#include "tests/experiments/said.hpp"
#include "tests/json.hpp"

// The study of looks, with a tenth of its loops.

TEST_SUITE("peeking") {
  using namespace heed::test;

  TEST_CASE("evidence errs in few loops, the sign-flip test at every look in many; e-BH leaves hardly a false verdict; same bits again") {
    Folder const folder;
    for (std::string const name : {"a", "b"})
      run_well({"run", "configs/studies/peeking.yaml", "study.loops=200", "name=" + name, "--quiet", "--output", folder.path().string()});
    CHECK(get(folder / "a/results.csv") == get(folder / "b/results.csv"));
    std::map<std::string, double> last;
    for (auto const& line : lines_of(get(folder / "a/results.csv")))
      if (line.find("normal") != line.npos) last[line.substr(0, line.find(','))] = std::atof(line.substr(line.rfind(',') + 1).c_str());
    CHECK(last.at("evidence") <= 0.08);
    CHECK(last.at("not covered") <= last.at("evidence"));
    CHECK(last.at("sign flips") >= 0.12);
    CHECK(last.at("sign flips") <= 0.35);
    CHECK(last.at("median") == 6);  // of the largest difference
    CHECK(last.at("false with e-BH") <= 0.05);
    CHECK(last.at("false without e-BH") > last.at("false with e-BH"));
    CHECK(last.at("found with e-BH") > 0.9);
    check_holds(get(folder / "a/report.html"), {"sign-flip test at every look"});
  }
}
