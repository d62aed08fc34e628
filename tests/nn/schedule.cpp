#include "nn/schedule.hpp"

#include <numbers>

#include "tests/nn/choice.hpp"

using namespace heed;
using doctest::Approx;

namespace {

Choice schedule(std::string const& kind, test::Keys const& values = {}) { return test::chosen(schedule_choice(), kind, values); }

}  // namespace

TEST_SUITE("schedule") {
  TEST_CASE("constant: lr at every step, also if nothing was chosen") {
    for (Index const t : {0, 1, 99, 1000}) {
      CHECK(learning_rate(schedule_choice(), t, {100, 0.3}) == 0.3);
      CHECK(learning_rate(schedule("constant"), t, {100, 0.3}) == 0.3);
    }
  }

  TEST_CASE("warm-up: lr (t + 1)/(warmup + 1), by all kinds that end at lr") {
    for (std::string const kind : {"constant", "linear", "cosine", "wsd", "inverse_sqrt"}) {
      CAPTURE(kind);
      Choice const choice = schedule(kind, {{"warmup", 5}});
      for (Index t = 0; t < 5; ++t) CHECK(learning_rate(choice, t, {20, 0.002}) == Approx(0.002 * to_double(t + 1) / 6).epsilon(1e-15));
      CHECK(learning_rate(choice, 5, {20, 0.002}) == 0.002);
    }
    // also beyond the end of a run that is shorter than its warm-up
    CHECK(learning_rate(schedule("cosine", {{"warmup", 100}}), 50, {20, 1}) == Approx(51.0 / 101));
  }

  TEST_CASE("cosine: from lr at the warm-up's end to min_lr at the last step, and no further") {
    Choice const choice = schedule("cosine", {{"warmup", 100}, {"min_lr", 1e-4}});
    Training const training{2000, 1e-3};
    CHECK(learning_rate(choice, 100, training) == 1e-3);
    CHECK(learning_rate(choice, 1050, training) == Approx((1e-3 + 1e-4) / 2).epsilon(1e-14));
    for (Index t = 100; t < 2000; t += 37) {
      double const expected = 1e-4 + 0.5 * (1 + std::cos(std::numbers::pi * to_double(t - 100) / 1900)) * 9e-4;
      CHECK(learning_rate(choice, t, training) == Approx(expected).epsilon(1e-14));
      CHECK(learning_rate(choice, t, training) >= learning_rate(choice, t + 1, training));
    }
    CHECK(learning_rate(choice, 2000, training) == 1e-4);
    CHECK(learning_rate(choice, 5000, training) == 1e-4);
  }

  TEST_CASE("linear: equal steps down to min_lr") {
    Choice const choice = schedule("linear", {{"warmup", 10}, {"min_lr", 0.1}});
    Training const training{110, 1.1};
    for (Index t = 10; t <= 110; ++t) CHECK(learning_rate(choice, t, training) == Approx(1.1 - 0.01 * to_double(t - 10)).epsilon(1e-14));
    CHECK(learning_rate(choice, 111, training) == 0.1);
  }

  TEST_CASE("wsd: constant until the last share of the updates, then down to min_lr in three forms") {
    Training const training{100, 1};
    std::pair<std::string, double> const forms[]{{"linear", 0.5}, {"cosine", 0.5}, {"sqrt", 1 - std::sqrt(0.5)}};
    for (auto const& [form, half] : forms) {
      CAPTURE(form);
      Choice const choice = schedule("wsd", {{"warmup", 10}, {"min_lr", 0.1}, {"decay", 0.2}, {"form", form}});
      for (Index t = 10; t <= 80; ++t) CHECK(learning_rate(choice, t, training) == 1);
      CHECK(learning_rate(choice, 90, training) == Approx(0.1 + 0.9 * half).epsilon(1e-14));
      for (Index t = 80; t < 100; ++t) CHECK(learning_rate(choice, t, training) > learning_rate(choice, t + 1, training));
      for (Index const t : {100, 101, 1000}) CHECK(learning_rate(choice, t, training) == 0.1);
    }
    CHECK(learning_rate(schedule("wsd", {{"decay", 1.0}}), 25, training) == learning_rate(schedule("linear"), 25, training));
    CHECK(learning_rate(schedule("wsd", {{"warmup", 90}, {"decay", 0.5}}), 95, training) == 0.5);  // no decay before the warm-up's end
  }

  TEST_CASE("inverse_sqrt: lr at the warm-up's end, half of it after four times as many updates, without an end") {
    Choice const choice = schedule("inverse_sqrt", {{"warmup", 99}});
    CHECK(learning_rate(choice, 99, {100, 0.3}) == 0.3);
    CHECK(learning_rate(choice, 399, {100, 0.3}) == Approx(0.15).epsilon(1e-14));
    CHECK(learning_rate(choice, 399, {5000, 0.3}) == learning_rate(choice, 399, {100, 0.3}));
  }

  TEST_CASE("min_lr is the rate of step `steps`, one after the last update, and its help says so") {
    for (char const* const kind : {"linear", "cosine"}) {
      Choice const choice = schedule(kind, {{"min_lr", 0.1}});
      CHECK(learning_rate(choice, 4, {5, 1}) > 0.18);
      CHECK(learning_rate(choice, 5, {5, 1}) == 0.1);
      auto const fields = choice.settings->fields();
      auto const& help = std::ranges::find(fields, "min_lr", &Field::name)->help;
      CHECK(help.find("step train.steps") != std::string::npos);
      CHECK(help.find("one step after the last update") != std::string::npos);
    }
  }

  TEST_CASE("a warm-up that is longer than the training is said, of every kind, and one that ends is not") {
    for (std::string const kind : {"constant", "linear", "cosine", "wsd", "inverse_sqrt"}) {
      CAPTURE(kind);
      for (Index const warmup : {0, 1, 19}) CHECK(!unfinished_warmup(schedule(kind, {{"warmup", warmup}}), {20, 1}));
      for (Index const warmup : {20, 21, 999}) CHECK(unfinished_warmup(schedule(kind, {{"warmup", warmup}}), {20, 1}));
    }
    CHECK(*unfinished_warmup(schedule("cosine", {{"warmup", 99}, {"min_lr", 0.01}}), {20, 0.5}) ==
          "the training ends before its warm-up: after 20 steps, at a rate of 0.1; step 99 would have 0.5");
    CHECK(!unfinished_warmup(schedule("noam", {{"warmup", 20}}), {20, 1, 64}));
    CHECK(unfinished_warmup(schedule("noam", {{"warmup", 21}}), {20, 1, 64}));
    CHECK(!unfinished_warmup(schedule("cosine", {{"warmup", 100}}), {0, 1}));
    CHECK(!unfinished_warmup(schedule_choice(), {1, 1}));
  }

  TEST_CASE("noam: the values of Vaswani et al. 2017, d 512 and 4000 steps of warm-up") {
    Choice const choice = schedule("noam");
    Training const training{100'000, 1, 512};
    CHECK(learning_rate(choice, 4000 - 1, training) == Approx(6.98771243e-4).epsilon(1e-8));
    CHECK(learning_rate(choice, 0, training) == Approx(1.74692811e-7).epsilon(1e-8));
    CHECK(learning_rate(choice, 100'000 - 1, training) == Approx(1.39754e-4).epsilon(1e-5));
    for (Index t = 0; t < 3999; t += 101) CHECK(learning_rate(choice, t, training) < learning_rate(choice, t + 1, training));
    for (Index t = 3999; t < 9000; t += 101) CHECK(learning_rate(choice, t, training) > learning_rate(choice, t + 1, training));
    CHECK(learning_rate(schedule("noam", {{"factor", 2.0}, {"warmup", 400}}), 399, {1, 1, 64}) == Approx(2 / std::sqrt(64.0 * 400)));
    CHECK_THROWS_WITH_AS(learning_rate(choice, 0, {100, 1}), "schedule: noam wants a model that has a width", Error);
  }

  TEST_CASE("the kinds there are, each with the keys that mean something to it") {
    Choice const choice = schedule_choice();
    CHECK(choice.kind == "constant");
    using Names = std::vector<std::string>;
    CHECK(mapped(choice.options, &Choice::Option::name) == Names{"constant", "cosine", "extend", "inverse_sqrt", "linear", "noam", "wsd"});
    auto const keys = [&](std::string const& kind) { return mapped(schedule(kind).settings->fields(), &Field::name); };
    for (char const* const kind : {"constant", "inverse_sqrt"}) CHECK(keys(kind) == Names{"warmup"});
    for (char const* const kind : {"linear", "cosine"}) CHECK(keys(kind) == Names{"warmup", "min_lr"});
    CHECK(keys("noam") == Names{"warmup", "factor"});
    CHECK(keys("wsd") == Names{"warmup", "min_lr", "decay", "form"});
    CHECK_THROWS_WITH_AS(learning_rate(Choice(), 0, {100, 1}), "schedule: no kind is chosen", Error);
  }
}
