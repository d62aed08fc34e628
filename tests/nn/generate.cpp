#include "autograd/blas/products.hpp"
#include "nn/decode.hpp"
#include "nn/models/blocks.hpp"
#include "tests/nn/models.hpp"

TEST_SUITE("generate") {
  using namespace heed;
  using test::absolute_difference;

  namespace {

  constexpr Index vocabulary = 11;

  struct SmallGpt {
    explicit SmallGpt(std::string const& position, DType dtype = DType::float64)
        : parameters(3, dtype, test::wide()), model(parameters, settings(position), vocabulary) {}
    static GptSettings settings(std::string const& position) {
      auto small = test::sized<GptSettings>(2, 2, 16, 16);
      small.position = position;
      return small;
    }
    Parameters parameters;
    Gpt model;
  };

  std::vector<Index> some_tokens(Index count) {
    auto const tokens = test::random_tokens({count}, vocabulary);
    return {tokens.data<std::int64_t>().begin(), tokens.data<std::int64_t>().end()};
  }

  /// The scores after the last of these tokens, all read at once without a cache.
  Tensor scores_after(Model const& model, std::span<Index const> tokens) {
    auto const n = std::ssize(tokens);
    Tensor const inputs = Tensor::of(std::vector(tokens.begin(), tokens.end()), {1, n});
    return model.logits({{"inputs", inputs}}, {}).viewed({n, vocabulary}).rows(n - 1, 1).viewed({vocabulary});
  }

  std::vector<Index> continued(Model const& model, std::vector<Index> const& prompt, Index count, SamplingSettings const& settings,
                               std::uint64_t seed) {
    std::vector<Index> result;
    generate(model, prompt, count, settings, Stream(seed, "sample"), [&](Index token) { return result.push_back(token), true; });
    return result;
  }

  }  // namespace

  TEST_CASE("scores with the cache are those without, at every position and however the tokens are cut") {
    for (std::string const position : {"learned", "sinusoidal", "none"}) {
      CAPTURE(position);
      SmallGpt const gpt(position);
      auto const tokens = some_tokens(16);
      std::span const all(tokens);
      for (std::size_t chunk : {1U, 2U, 3U, 7U, 16U}) {
        Decoder decoder(gpt.model);
        for (std::size_t i = 0; i < tokens.size(); i += chunk) {
          auto const end = std::min(tokens.size(), i + chunk);
          CHECK(absolute_difference(decoder.read(all.subspan(i, end - i)), scores_after(gpt.model, all.first(end))) <= 1e-12);
          CHECK(decoder.seen() == static_cast<Index>(end));
        }
      }
    }
  }

  TEST_CASE("in bfloat16, where rounded weights are kept, scores one by one are nearly those of all tokens at once") {
    SmallGpt const gpt("learned", DType::float32);
    auto const tokens = some_tokens(16);
    std::span const all(tokens);
    WithProducts const chosen({.bfloat16 = true});
    Decoder decoder(gpt.model);
    decoder.read(all.first(3));  // rows together: weights are not kept yet
    for (std::size_t end = 4; end <= tokens.size(); ++end) {
      Tensor const scores = decoder.read(all.subspan(end - 1, 1));
      CHECK(absolute_difference(scores, scores_after(gpt.model, all.first(end))) <= 0.05);  // other sums round to other bfloat16 numbers
    }
  }

  TEST_CASE("beyond the context, the last tokens count, and how they were cut does not") {
    for (std::string const position : {"learned", "sinusoidal", "none"}) {
      CAPTURE(position);
      SmallGpt const gpt(position);
      auto const tokens = some_tokens(70);
      std::span const all(tokens);
      Decoder one_by_one(gpt.model);
      Index rebuilt = 0, before = 0;
      for (std::size_t end = 1; end <= tokens.size(); ++end) {
        Tensor const scores = one_by_one.read(all.subspan(end - 1, 1));
        auto const seen = one_by_one.seen();
        CHECK(absolute_difference(scores, scores_after(gpt.model, all.first(end).last(static_cast<std::size_t>(seen)))) <= 1e-12);
        CHECK(seen >= std::min<Index>(static_cast<Index>(end), 16));
        CHECK(seen <= (position == "learned" ? 16 : 18));
        if (end > 18 && seen != before + 1) ++rebuilt;
        before = seen;
        Decoder at_once(gpt.model);
        CHECK(absolute_difference(at_once.read(all.first(end)), scores) <= 1e-12);
        CHECK(at_once.seen() == seen);
      }
      CHECK(rebuilt == (position == "learned" ? 52 : 18));  // for each token, or every third
    }
  }

  TEST_CASE("temperature 0 takes the largest score, and so does a very low one") {
    SmallGpt const gpt("learned");
    std::vector<Index> tokens{4};
    for (int i = 0; i < 15; ++i) {
      auto const scores = scores_after(gpt.model, tokens).to_vector();
      tokens.push_back(std::ranges::max_element(scores) - scores.begin());
    }
    std::vector<Index> const expected(tokens.begin() + 1, tokens.end());
    for (double temperature : {0.0, 1e-6, 1e-310}) CHECK(continued(gpt.model, {4}, 15, {temperature, 0, 1}, 1) == expected);
  }

  TEST_CASE("the same seed draws the same tokens; a longer text begins with the shorter; another seed differs") {
    SmallGpt const gpt("sinusoidal");
    auto const text = continued(gpt.model, {1, 2}, 60, {}, 7);
    CHECK(text.size() == 60);
    CHECK(text == continued(gpt.model, {1, 2}, 60, {}, 7));
    CHECK(text != continued(gpt.model, {1, 2}, 60, {}, 8));
    CHECK(continued(gpt.model, {1, 2}, 25, {}, 7) == std::vector(text.begin(), text.begin() + 25));
    CHECK(continued(gpt.model, {1, 2}, 0, {}, 7).empty());
  }

  TEST_CASE("emit ends the text") {
    SmallGpt const gpt("none");
    int calls = 0;
    generate(gpt.model, std::vector<Index>{1}, 10, {}, Stream(1, "sample"), [&](Index) { return ++calls < 4; });
    CHECK(calls == 4);
  }

  TEST_CASE("tokens come as often as their probabilities say") {
    SmallGpt const gpt("learned");
    auto const scores = scores_after(gpt.model, std::vector<Index>{3}).to_vector();
    for (SamplingSettings const settings : {SamplingSettings{}, {0.7, 0, 1}, {1.3, 6, 1}, {1, 0, 0.8}, {2, 8, 0.9}}) {
      auto const possible = candidates(scores, settings);
      constexpr int draws = 20'000;
      std::vector<int> counts(vocabulary);
      Stream const stream(11, "draws");
      for (std::uint64_t i = 0; i < draws; ++i) ++at(counts, draw_token(possible, stream.uniform(i)));
      double chi_square = 0;
      int seen = 0;
      for (auto const& [token, probability] : possible) {
        double const expected = draws * probability, count = at(counts, token);
        chi_square += (count - expected) * (count - expected) / expected;
        seen += at(counts, token);
      }
      CHECK(seen == draws);      // none that was excluded
      CHECK(chi_square < 29.6);  // 99.9 % of χ² with ten degrees of freedom, the most there are
    }
  }

  TEST_CASE("probabilities are the softmax; top_k, then top_p leave the most probable") {
    using Tokens = std::vector<Index>;
    std::vector<double> const scores{1, 3, 2, 3, -1};
    auto const tokens_of = [&](SamplingSettings const& settings) {
      Tokens tokens;
      double sum = 0;
      for (auto const& [token, probability] : candidates(scores, settings)) tokens.push_back(token), sum += probability;
      CHECK(sum == doctest::Approx(1).epsilon(1e-14));
      return tokens;
    };
    double normaliser = 0;
    for (double score : scores) normaliser += std::exp(score / 0.5);
    for (auto const& [token, probability] : candidates(scores, {0.5, 0, 1}))
      CHECK(probability == doctest::Approx(std::exp(at(scores, token) / 0.5) / normaliser).epsilon(1e-14));
    CHECK(tokens_of({1, 0, 1}) == Tokens{1, 3, 2, 0, 4});  // of equals the lower first
    CHECK(tokens_of({1, 3, 1}) == Tokens{1, 3, 2});
    CHECK(tokens_of({1, 1, 1}) == Tokens{1});
    CHECK(tokens_of({1, 100, 1}).size() == 5);
    CHECK(tokens_of({1, 0, 1e-9}) == Tokens{1});
    CHECK(tokens_of({1, 0, 0.79}) == Tokens{1, 3});  // shares 0.397, 0.397, 0.146, 0.054, 0.007
    CHECK(tokens_of({1, 0, 0.8}) == Tokens{1, 3, 2});
    CHECK(tokens_of({1, 2, 0.5}) == Tokens{1});  // half of what top_k has left
    CHECK(tokens_of({1, 2, 0.51}) == Tokens{1, 3});
    CHECK(tokens_of({0, 4, 1}) == Tokens{1});
    CHECK(candidates(std::vector<double>{0, -std::numeric_limits<double>::infinity()}, {}).size() == 1);
  }

  TEST_CASE("draw covers the unit interval") {
    std::vector<TokenCandidate> const possible{{7, 0.5}, {2, 0.25}, {4, 0.25 - 1e-17}};
    CHECK(draw_token(possible, 0) == 7);
    CHECK(draw_token(possible, 0.4999) == 7);
    CHECK(draw_token(possible, 0.5) == 2);
    CHECK(draw_token(possible, 0.75) == 4);
    CHECK(draw_token(possible, 1 - 0x1p-53) == 4);
  }

  TEST_CASE("what cannot be continued is refused") {
    SmallGpt const gpt("learned");
    CHECK_THROWS_WITH_AS(continued(gpt.model, {}, 3, {}, 1), "generate: there is no token to continue from", Error);
    CHECK_THROWS_WITH_AS(continued(gpt.model, {vocabulary}, 3, {}, 1), doctest::Contains("11"), Error);
    std::vector<double> const scores{0, 1};
    CHECK_THROWS_WITH_AS(candidates(scores, {-1, 0, 1}), "generate: temperature -1 is not a finite number ≥ 0", Error);
    for (SamplingSettings const& wrong : {SamplingSettings{std::nan(""), 0, 1}, {1, -1, 1}, {1, 0, 0}, {1, 0, 1.1}})
      CHECK_THROWS_AS(candidates(scores, wrong), Error);
    for (double const score : {std::nan(""), std::numeric_limits<double>::infinity()})
      CHECK_THROWS_AS(candidates(std::vector<double>{0, score}, {}), NonFinite);
  }
}
