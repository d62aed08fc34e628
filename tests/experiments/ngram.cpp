#include "experiments/data/ngram.hpp"

#include <chrono>

#include "autograd/error.hpp"
#include "autograd/random.hpp"
#include "tests/test.hpp"

using namespace heed;

namespace {

using Tokens = std::vector<std::int32_t>;

/// The definition, word for word: P_k from counts of all k-grams, for one held-out token at a time.
double by_definition(Tokens const& train, Tokens const& held_out, double vocabulary, int order) {
  std::map<Tokens, double> count;             // of k-grams
  std::map<Tokens, double> followed;          // c(h)
  std::map<Tokens, std::set<int>> followers;  // T(h)
  for (std::size_t i = 0; i < train.size(); ++i)
    for (std::size_t k = 0; k < static_cast<std::size_t>(order) && k <= i; ++k) {
      Tokens const context(train.begin() + static_cast<long>(i - k), train.begin() + static_cast<long>(i));
      Tokens gram(context);
      gram.push_back(train[i]);
      ++count[gram];
      ++followed[context];
      followers[context].insert(train[i]);
    }
  double loss = 0;
  for (std::size_t i = 0; i < held_out.size(); ++i) {
    double p = 1 / vocabulary;
    for (std::size_t k = 0; k < static_cast<std::size_t>(order) && k <= i; ++k) {
      Tokens const context(held_out.begin() + static_cast<long>(i - k), held_out.begin() + static_cast<long>(i));
      if (!followed.count(context)) continue;
      Tokens gram(context);
      gram.push_back(held_out[i]);
      double const types = static_cast<double>(followers[context].size());
      p = ((count.count(gram) ? count[gram] : 0) + types * p) / (followed[context] + types);
    }
    loss -= std::log(p);
  }
  return loss / static_cast<double>(held_out.size());
}

/// Tokens of a random walk, so that contexts tell something.
Tokens walk(std::uint64_t seed, std::size_t length, std::int32_t vocabulary) {
  Stream const stream(seed, "walk");
  Tokens tokens;
  for (std::size_t i = 0; i < length; ++i) {
    auto const step = static_cast<std::int32_t>(stream.below(i, 3));
    tokens.push_back(((tokens.empty() ? 0 : tokens.back()) + step) % vocabulary);
  }
  return tokens;
}

}  // namespace

TEST_SUITE("ngram") {
  TEST_CASE("the losses are the definition's") {
    for (std::int32_t vocabulary : {1, 2, 5, 11}) {
      auto const train = walk(1, 300, vocabulary), held_out = walk(2, 80, vocabulary);
      auto const losses = witten_bell(train, held_out, vocabulary, 5);
      REQUIRE(losses.size() == 5);
      for (int order = 1; order <= 5; ++order)
        CHECK(at(losses, order - 1) == doctest::Approx(by_definition(train, held_out, vocabulary, order)).epsilon(1e-12));
    }
  }

  TEST_CASE("a context that was never seen falls back to the shorter one, an unseen token to the uniform distribution") {
    auto const losses = witten_bell(Tokens{0, 0, 0}, Tokens{1}, 4, 3);
    // Unigram: c = 0, n = 3, one type: 1/4 · 1/4. There are no contexts, so the other orders add nothing.
    for (auto loss : losses) CHECK(loss == doctest::Approx(std::log(16)));
  }

  TEST_CASE("no context reaches beyond a boundary") {
    // Sentences a b and b a between boundaries (0): after the boundary both begin equally often, and an a or b decides the rest.
    Tokens train{0};
    for (int i = 0; i < 500; ++i)
      for (auto token : i % 2 ? Tokens{1, 2, 0} : Tokens{2, 1, 0}) train.push_back(token);
    auto const losses = witten_bell(train, Tokens{0, 1, 2, 0, 1, 2, 0}, 3, 3, 0);
    CHECK(losses[2] == doctest::Approx(std::log(2) / 3).epsilon(0.02));
    // Without the rule order 3 would learn that the sentences take turns.
    auto const whole = witten_bell(train, train, 3, 4);
    CHECK(whole[3] < 0.05);
    CHECK(witten_bell(train, train, 3, 4, 0)[3] == doctest::Approx(std::log(2) / 3).epsilon(0.02));
  }

  TEST_CASE("a sentence's loss does not depend on its neighbours") {
    auto train = walk(3, 400, 7);
    train.insert(train.begin(), 0);
    auto const one = witten_bell(train, Tokens{0, 3, 4, 5, 0}, 7, 6, 0), other = witten_bell(train, Tokens{0, 2, 2, 3, 0}, 7, 6, 0);
    auto const both = witten_bell(train, Tokens{0, 3, 4, 5, 0, 2, 2, 3, 0}, 7, 6, 0);
    for (std::size_t k = 0; k < 6; ++k) CHECK(both[k] == doctest::Approx((one[k] + other[k]) / 2).epsilon(1e-12));
  }

  TEST_CASE("a token outside the vocabulary is refused") {
    CHECK_THROWS_WITH_AS(witten_bell(Tokens{0, 5}, Tokens{0}, 5), "witten_bell: token 5 is outside the vocabulary of 5", Error);
    CHECK_THROWS_AS(witten_bell(Tokens{0}, Tokens{-1}, 5), Error);
  }

  TEST_CASE("a million tokens take about a second") {
    auto const train = walk(1, 1'000'000, 65), held_out = walk(2, 100'000, 65);
    auto const start = std::chrono::steady_clock::now();
    auto const losses = witten_bell(train, held_out, 65);
    CHECK(losses[0] == doctest::Approx(std::log(65)).epsilon(0.01));
    CHECK(losses[1] == doctest::Approx(std::log(3)).epsilon(0.01));
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));  // generous: sanitizers and busy machines
  }
}
