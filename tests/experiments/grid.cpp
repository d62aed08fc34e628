#include "experiments/report/grid.hpp"

#include "experiments/ablation/results.hpp"
#include "tests/test.hpp"

// Arms that combine the values of several keys: which grid they make, and what each key does in it.

TEST_SUITE("grid") {
  using namespace heed;
  using doctest::Approx;

  namespace {

  KeyValues arm(std::string const& attention, std::string const& position) {
    return {{"model.attention", attention}, {"model.position", position}};
  }

  std::vector<KeyValues> const two_by_two{arm("scaled", "t5"), arm("scaled", "rotary"), arm("{align: sparsemax}", "t5"),
                                          arm("{align: sparsemax}", "rotary")};

  Effect const& named(std::vector<Effect> const& effects, std::string_view name) {
    auto const found = std::ranges::find(effects, name, &Effect::name);
    REQUIRE_MESSAGE(found != effects.end(), "there is no effect " << name);
    return *found;
  }

  }  // namespace

  TEST_CASE("two keys make a grid with short labels; one key, or keys that move in step, make none") {
    auto const grid = grid_of(two_by_two);
    REQUIRE(grid);
    CHECK(grid->factors[0].labels == std::vector<std::string>{"scaled", "sparsemax"});
    CHECK(grid->name(1) == "position");
    CHECK(grid->arm_at({1, 0}) == 2);
    CHECK(grid->combinations_without({0}) == std::vector<std::vector<std::size_t>>{{0, 0}, {0, 1}});
    CHECK(!grid_of({{{"a", "1"}}, {{"a", "2"}}, {{"a", "3"}}}));
    CHECK(!grid_of({{{"a", "1"}, {"b", "1"}}, {{"a", "2"}, {"b", "2"}}, {{"a", "3"}, {"b", "3"}}}));
    CHECK(!grid_of({}));

    auto more = two_by_two;  // an arm of its own is no combination, and one that is skipped leaves the others a grid
    more.push_back({{"model.width", "128"}});
    CHECK(grid_of(more)->levels_by_arm.back().empty());
    more = two_by_two;
    more.erase(more.begin() + 1);
    CHECK(grid_of(more));
    auto const same = grid_of({{{"a", "{score: x, align: y}"}, {"b", "1"}},
                               {{"a", "{score: x, align: z}"}, {"b", "1"}},
                               {{"a", "{score: x, align: y}"}, {"b", "2"}},
                               {{"a", "{score: x, align: z}"}, {"b", "2"}}});
    CHECK(same->factors[0].labels == std::vector<std::string>{"x-y", "x-z"});
  }

  TEST_CASE("main effects are means over the other keys, interactions differences of differences; both by seed") {
    auto const grid = *grid_of(two_by_two);
    // y = seed/100 + 1·[sparsemax] + 0.2·[rotary] + 0.5·[both]
    std::vector<BySeed> values(4);
    for (int seed = 1; seed <= 6; ++seed) {
      double const base = 0.01 * seed, noise = 1e-3 * (seed % 3);
      values[0][seed] = base;
      values[1][seed] = base + 0.2;
      values[2][seed] = base + 1 + noise;
      values[3][seed] = base + 1.7 + noise;
    }
    auto const effects = effects_of(grid, values, 0, "nat", {});
    REQUIRE(effects.size() == 3);
    auto const& attention = named(effects, "attention: sparsemax − scaled").comparison;
    CHECK(attention.mean == Approx(1.25 + 1e-3));
    CHECK(attention.p == 0.03125);
    CHECK(attention.arms == 3);
    CHECK(named(effects, "position: rotary − t5").comparison.mean == Approx(0.45));
    auto const& both = named(effects, "attention × position: (sparsemax − scaled) × (rotary − t5)");
    CHECK(both.interaction);
    CHECK(both.comparison.mean == Approx(0.5));
    CHECK(both.sentence ==
          "attention sparsemax instead of scaled changes it by +0.5 nat more with position rotary than with t5 (p = 0.031, 6 "
          "seeds)");
    CHECK(named(effects, "attention: sparsemax − scaled").sentence.starts_with("over all else, attention sparsemax is 1.25"));

    // Against another arm's values; without the interaction's fourth arm there is no interaction.
    CHECK(named(effects_of(grid, values, 3, "", {}), "position: t5 − rotary").comparison.mean == Approx(-0.45));
    values[3].clear();
    auto const fewer = effects_of(grid, values, 0, "", {});
    CHECK(fewer.size() == 2);
    CHECK(named(fewer, "position: rotary − t5").comparison.mean == Approx(0.2));
  }

  TEST_CASE("an effect says over how many combinations it is averaged: not over those that an added or a skipped arm leaves incomplete") {
    std::vector<BySeed> values(5);
    for (std::size_t arm = 0; arm < values.size(); ++arm)
      for (int seed = 1; seed <= 6; ++seed) values[arm][seed] = static_cast<double>(arm) + 0.01 * seed;
    auto arms = two_by_two;
    CHECK(over_all_combinations(effects_of(*grid_of(arms), std::vector<BySeed>(values.begin(), values.begin() + 4), 0, "", {})));
    arms.push_back(arm("scaled", "none"));  // one of two: the grid has a fifth cell of six
    auto const effects = effects_of(*grid_of(arms), values, 0, "nat", {});
    CHECK(!over_all_combinations(effects));
    auto const& part = named(effects, "position: none − t5");
    CHECK((part.averaged == 1 && part.combinations == 2));
    CHECK(part.sentence.starts_with("over 1 of 2 combinations of all else, position none is 4"));
    auto const& whole = named(effects, "position: rotary − t5");
    CHECK((whole.averaged == 2 && whole.combinations == 2));
    CHECK(whole.sentence.starts_with("over all else, position rotary is 1"));
    auto const& attention = named(effects, "attention: sparsemax − scaled");
    CHECK((attention.averaged == 2 && attention.combinations == 3));
  }

  TEST_CASE("effects of infinite values: infinite, or open where both sides have them; bounded ones stay within bounds") {
    auto const grid = *grid_of(two_by_two);
    std::vector<BySeed> values(4);
    for (std::size_t arm = 0; arm < values.size(); ++arm)
      for (int seed = 1; seed <= 6; ++seed) values[arm][seed] = 1 + 0.01 * seed + 0.1 * static_cast<double>(arm);
    std::vector<Effect> effects;
    for (std::size_t const arm : {2, 3}) {
      values[arm][3] = std::numeric_limits<double>::infinity();
      effects = effects_of(grid, values, 0, "nat", {});
      REQUIRE(effects.size() == 3);
      CHECK(named(effects, "attention: sparsemax − scaled").comparison.mean == values[arm][3]);
    }
    CHECK(std::isnan(named(effects, "position: rotary − t5").comparison.mean));
    CHECK(named(effects, "position: rotary − t5").comparison.seeds == 6);

    for (auto& arm : values)
      for (auto& [seed, value] : arm) value = &arm >= &values[2] ? (seed < 3 ? 0.6 : 1) : 0;
    effects = effects_of(grid, values, 0, "", {.better = Better::higher, .bounds = {.min = 0, .max = 1}});
    CHECK(named(effects, "attention: sparsemax − scaled").comparison.interval->high == 1);
  }
}
