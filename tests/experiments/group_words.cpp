#include "autograd/random.hpp"
#include "experiments/data/tasks/group.hpp"
#include "tests/experiments/task.hpp"

TEST_SUITE("group_words") {
  using namespace heed;

  namespace {
  bool is_even(std::vector<Index> p) {
    Index swaps = 0;
    for (std::size_t i = 0; i < p.size(); ++i)
      for (; p[i] != static_cast<Index>(i); ++swaps) std::swap(p[i], p[static_cast<std::size_t>(p[i])]);
    return swaps % 2 == 0;
  }
  }  // namespace

  TEST_CASE("the groups are groups, of these sizes") {
    for (auto const& [name, size] : std::map<std::string, std::size_t>{{"Z2", 2}, {"Z60", 60}, {"S3", 6}, {"S5", 120}, {"A5", 60}}) {
      CAPTURE(name);
      auto const& group = finite_groups().at(name);
      REQUIRE(group.size() == size);
      bool commutes = true;
      for (std::size_t g = 0; g < size; ++g) {
        CHECK((group.product(0, g) == g && group.product(g, 0) == g));
        std::set<std::size_t> row;
        for (std::size_t h = 0; h < size; ++h) commutes = commutes && group.product(g, h) == group.product(h, g);
        for (std::size_t h = 0; h < size; ++h) row.insert(group.product(g, h));
        CHECK(row.size() == size);  // hence every element has an inverse
      }
      CHECK(commutes == name.starts_with("Z"));
      Stream const draws(1, name);
      for (std::size_t i = 0; i < 3000; i += 3) {
        auto const a = draws.below(i, size), b = draws.below(i + 1, size), c = draws.below(i + 2, size);
        CHECK(group.product(group.product(a, b), c) == group.product(a, group.product(b, c)));
      }
    }
    CHECK(std::ranges::all_of(finite_groups().at("A5").elements, is_even));
  }

  TEST_CASE("targets are products, in training sequences of some lengths, in held-out ones of all") {
    for (std::string const name : {"parity", "group_words"}) {
      auto const data = test::task(name, {{"shortest", 5}});
      auto const& group = finite_groups().at(name == "parity" ? "Z2" : "S3");
      std::set<std::size_t> lengths;
      for (bool const held_out : {false, true})
        for (auto const& [inputs, targets] : test::rows_of(held_out ? data->validation(0, 100, 9) : data->training(0, 100, 9))) {
          auto const length = static_cast<std::size_t>(std::ranges::find(inputs, 0) - inputs.begin());
          if (held_out) CHECK(length == 9);
          lengths.insert(length);
          for (std::size_t i = 0; i < length; ++i) {
            auto product = at(group.elements, inputs[i] - 1);
            for (Index& x : product) x = at(at(group.elements, i == 0 ? 0 : targets[i - 1] - 1), x);
            CHECK(at(group.elements, targets[i] - 1) == product);
          }
          CHECK(std::ranges::count(targets, -1) == std::ranges::count(inputs, 0));
        }
      CHECK(lengths == std::set<std::size_t>{5, 6, 7, 8, 9});
    }
  }
}
