// A run goes on from another one, under another schedule or with more steps (train.continue).

#include "nn/files/checkpoint.hpp"
#include "tests/experiments/said.hpp"
#include "tests/experiments/trace.hpp"
#include "tests/json.hpp"

TEST_SUITE("continued") {
  using namespace heed;
  using Words = std::vector<std::string>;
  namespace fs = std::filesystem;

  namespace {

  struct Bench {
    Bench() {
      test::put(folder / "a.yaml", R"(
name: a
dtype: float64
data: {kind: copy, length: 2, vocabulary: 4, validation: 8}
model: {kind: gpt, layers: 1, heads: 2, width: 8, context: 6, dropout: 0.1}
train: {steps: 12, batch: 4, accumulate: 2, optimizer: {kind: adamw, lr: 1.0e-2}, ema: 0.9, evaluate: {every: 4}, checkpoint: {every: 5}}
)");
    }
    Words command(std::string const& name, Words const& more) const {
      return test::joined({"run", folder / "a.yaml", "--output", folder / "runs", "--quiet", "name=" + name}, more);
    }
    fs::path run(std::string const& name, Words const& more = {}) const {
      test::run_well(command(name, more));
      return folder / "runs" / name;
    }
    test::Folder folder;
  };

  void check_same(fs::path const& found, fs::path const& expected) {
    CHECK(test::rows_of(found) == test::rows_of(expected));
    auto const a = load_checkpoint(found), b = load_checkpoint(expected);
    CHECK(a.step == b.step);
    for (auto const& [left, right] : {std::pair(&a.parameters, &b.parameters), {&a.state, &b.state}}) {
      REQUIRE(left->size() == right->size());
      for (std::size_t i = 0; i < left->size(); ++i) CHECK(same_bits((*left)[i].second, (*right)[i].second));
    }
  }

  std::map<Index, double> rates(fs::path const& run) {
    std::map<Index, double> all;
    for (auto const& row : test::json_rows(run / "metrics.jsonl"))
      if (row.contains("lr")) all[row["step"].get<Index>()] = row["lr"].get<double>();
    return all;
  }

  }  // namespace

  TEST_CASE("with the same settings it equals a run that was never interrupted, to the bit; twice, and with the best weights") {
    Bench const bench;
    for (Words const& how : {Words{}, Words{"train.keep=best"}, Words{"train.adapters={rank: 2, on: [value, up]}"}}) {
      auto const with = [&](Words more) { return test::joined(more, test::joined(how, {"--fresh"})); };
      auto const whole = bench.run("whole", with({"train.steps=23"}));
      bench.run("a", with({}));
      bench.run("b", with({"train.continue=a", "train.steps=17"}));
      check_same(bench.run("c", with({"train.continue=b", "train.steps=23"})), whole);
    }
  }

  TEST_CASE("its lineage is in the summary and on the page, and its curve begins with the other's") {
    Bench const bench;
    bench.run("a"), bench.run("b", {"train.continue=a", "train.steps=17"});
    auto const run = bench.run("c", {"train.continue=b", "train.steps=23"});
    auto const from = test::summary_of(run)["continued"];
    CHECK(from["step"] == 17);
    CHECK(from["continued"]["step"] == 12);
    CHECK(from["sha256"].get<std::string>().size() == 64);
    CHECK(test::json_rows(run / "metrics.jsonl").front()["step"] == 0);
    test::check_holds(test::get(run / "report.html"), {"continued from", "at step 17, which was continued from", "at step 12"});
    test::check_holds(test::run_well(bench.command("c", {"train.continue=b", "train.steps=23"})).errors, {});
    bench.run("b", {"train.continue=a", "train.steps=19"});  // the run goes on
    test::refuses(bench.command("c", {"train.continue=b", "train.steps=23"}), 2, {"train.continue", "has changed"});
  }

  TEST_CASE_FIXTURE(Bench, "extend: from the last rate of a finished schedule, constant or down again") {
    Words const cosine{"train.schedule={kind: cosine, min_lr: 1.0e-3}"};
    auto const before = rates(run("a", cosine));
    double const last = before.at(11);
    CHECK(last > 1e-3);
    auto const constant = rates(run("b", {"train.continue=a", "train.steps=20", "train.schedule={kind: extend}"}));
    for (Index step = 0; step < 20; ++step) CHECK(constant.at(step) == (step < 12 ? before.at(step) : last));
    auto const down =
        rates(run("c", {"train.continue=a", "train.steps=20", "train.schedule={kind: extend, form: linear, min_lr: 1.0e-4}"}));
    for (Index step = 12; step < 20; ++step)
      CHECK(down.at(step) == doctest::Approx(1e-4 + (1 - static_cast<double>(step - 12) / 8) * (last - 1e-4)).epsilon(1e-14));
    auto const again = rates(run("d", {"train.continue=c", "train.steps=22", "train.schedule={kind: extend}"}));
    CHECK(again.at(21) == down.at(19));
  }

  TEST_CASE_FIXTURE(Bench, "cut off and run again it leaves what it leaves at once") {
    run("a");
    Words const more{"train.continue=a", "train.steps=60"};
    auto const whole = run("whole", more);
    test::Program program(command("cut", more));
    REQUIRE(program.wait_until([&] { return fs::exists(folder / "runs/cut/checkpoint.safetensors"); }));
    program.send(SIGKILL);
    program.wait();
    check_same(run("cut", more), whole);
  }
}
