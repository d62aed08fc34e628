#include "experiments/train/selection.hpp"

#include "tests/test.hpp"

using namespace heed;

namespace {

constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

Selection selection(std::string const& metric, std::optional<Index> patience = {}, double least = 0) {
  SelectSettings select;
  select.metric = metric;
  StopSettings stop;
  stop.metric = metric;
  stop.patience = patience;
  stop.least = least;
  return {select, stop};
}

Row row(Index step, std::string const& metric, double value) { return {step, {{"loss", 1}, {metric, value}}}; }

/// The step after which a run ends that has these values at 0, 10, 20, …; −1: it does not.
Index stop_of(Selection tested, std::string const& metric, std::vector<double> const& values) {
  Index step = 0;
  for (double const value : values) {
    tested.add(row(step, metric, value));
    if (tested.stop()) return step;
    step += 10;
  }
  return -1;
}

}  // namespace

TEST_SUITE("selection") {
  TEST_CASE("the best evaluation is the lowest or highest by the metric's declaration, of equal ones the first") {
    auto lower = selection("validation.loss"), higher = selection("validation.accuracy");
    std::vector<double> const values{3, 2, 2, 4, 1, 1, 5};
    std::string best_of_lower, best_of_higher;
    for (std::size_t i = 0; i < values.size(); ++i) {
      auto const step = static_cast<Index>(i);
      best_of_lower += lower.add(row(step, "validation.loss", values[i])) ? '!' : '.';
      best_of_higher += higher.add(row(step, "validation.accuracy", values[i])) ? '!' : '.';
    }
    CHECK(best_of_lower == "!!..!..");
    CHECK(best_of_higher == "!..!..!");
    CHECK(lower.best()->step == 4);
    CHECK(lower.best()->value == 1);
    CHECK(higher.best()->step == 6);
    CHECK(lower.evaluations() == 7);
    CHECK(*lower.best()->row.find("loss") == 1);
  }

  TEST_CASE("rows without the metric are none of its evaluations; NaN is worse than any number") {
    auto tested = selection("validation.loss");
    CHECK(!tested.add({0, {{"loss", 3}}}));
    CHECK(!tested.add(row(1, "validation.loss", no_number)));
    CHECK(!tested.best());
    CHECK(tested.add(row(2, "validation.loss", std::numeric_limits<double>::infinity())));
    CHECK(!tested.add(row(3, "validation.loss", no_number)));
    CHECK(tested.add(row(4, "validation.loss", 7)));
    CHECK(tested.best()->step == 4);
    CHECK(tested.evaluations() == 4);
  }

  TEST_CASE("a run ends after as many evaluations without an improvement as patience says") {
    std::string const loss = "validation.loss";
    CHECK(stop_of(selection(loss, 2), loss, {5, 4, 4.5, 4.4, 3}) == 30);
    CHECK(stop_of(selection(loss, 2), loss, {5, 4, 4.5, 3.9, 4, 3.9, 1}) == 50);
    CHECK(stop_of(selection(loss, 1), loss, {5, 5}) == 10);
    CHECK(stop_of(selection(loss, 3), loss, {5, 6, 7}) == -1);
    CHECK(stop_of(selection(loss), loss, {5, 6, 7, 8, 9}) == -1);
    CHECK(stop_of(selection(loss, 2), loss, {no_number, no_number, 3, no_number, no_number}) == 10);
    CHECK(stop_of(selection(loss, 3), loss, {no_number, no_number, 3, no_number, no_number, 2, 3, 3, 3}) == 80);
    CHECK(stop_of(selection("validation.accuracy", 2), "validation.accuracy", {0.1, 0.2, 0.15, 0.2, 0.3}) == 30);
  }

  TEST_CASE("an improvement is one of the least difference on the last that was one") {
    std::string const loss = "validation.loss";
    CHECK(stop_of(selection(loss, 2, 1), loss, {5, 4.5, 4.25, 2}) == 20);
    CHECK(stop_of(selection(loss, 2, 1), loss, {5, 4.5, 4, 3.5, 3.25}) == 40);  // small steps that add up count when they have
    CHECK(stop_of(selection(loss, 3, 1), loss, {5, 4.5, 4.25, 4, 3.5, 3.25, 3}) == -1);
    auto tested = selection(loss, 2, 0.5);
    for (Index i = 0; i < 3; ++i) tested.add(row(i, loss, 4 - 0.125 * static_cast<double>(i)));
    CHECK(tested.stop() == "validation.loss has not improved by 0.5 or more on the 4.0000 of step 0 in 2 evaluations");
    CHECK(tested.best()->step == 2);
  }

  TEST_CASE("metrics by which nothing can be chosen are refused, with the nearest") {
    auto const refused = [](std::string const& metric) {
      SelectSettings settings;
      settings.metric = metric;
      return settings.contradiction().value_or("");
    };
    CHECK(refused("validation.loss") == "");
    CHECK(refused("validation.ema.accuracy") == "");
    CHECK(refused("validation.acuracy") ==
          "metric: 'validation.acuracy' is not a metric of an evaluation; did you mean 'validation.accuracy'?");
    CHECK(refused("loss").starts_with("metric: 'loss' is not a metric of an evaluation"));
    CHECK(refused("time.seconds").starts_with("metric: 'time.seconds' is not a metric of an evaluation"));
    StopSettings stop;
    stop.least = 1;
    CHECK(stop.contradiction() == "least: needs stop.patience");
    stop.patience = 3;
    CHECK(!stop.contradiction());
  }
}
