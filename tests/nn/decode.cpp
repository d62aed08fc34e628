#include "nn/decode.hpp"

#include "nn/models/blocks.hpp"
#include "tests/nn/small_transformer.hpp"

TEST_SUITE("decode") {
  using namespace heed;
  using namespace heed::test;

  TEST_CASE_FIXTURE(NoGrad, "many rows with caches are decoded as each alone without any") {
    constexpr Index rows = 12;
    Batch const given = some_sources(rows);
    for (std::string const attention : {"scaled", "additive", "general", "local-m", "local-p"})
      for (std::string const position : {"none", "learned", "sinusoidal", "rotary", "alibi", "t5", "shaw"})
        for (DType const dtype : {DType::float64, DType::float32}) {
          INFO("attention ", attention, ", position ", position);
          TransformerSettings settings = small(attention, position);
          settings.norm.placement = position == "t5" ? "pre" : "post";
          Made const made(settings, dtype);
          auto const together = greedy(made.model, given, begin, end, max_length);
          REQUIRE(together.size() == rows);
          for (Index row = 0; row < rows; ++row)
            check_same(at(together, row),
                       plain_beam(made.model, rows_of(given, {row}), max_length, {.width = 1, .length_penalty = 0}).front(),
                       bound_of(dtype));
        }
  }

  TEST_CASE("a row that ends leaves the others as they are") {
    Made const made(small());
    Batch const given = some_sources(40);
    auto const endless = greedy(made.model, given, begin, -1, max_length);
    std::set<std::size_t> lengths;
    for (Index last = 0; last < vocabulary; ++last) {
      auto const found = greedy(made.model, given, begin, last, max_length);
      for (std::size_t row = 0; row < found.size(); ++row) {
        auto const& all = endless[row].tokens;
        CHECK(found[row].tokens == std::vector(all.begin(), std::ranges::find(all, last)));
        CHECK(found[row].ended == (found[row].tokens.size() < all.size()));
        lengths.insert(found[row].tokens.size());
      }
    }
    CHECK(lengths.size() > 2);
  }

  TEST_CASE_FIXTURE(NoGrad, "rows that go on may change places and be told apart twice") {
    Batch const given = some_sources(3);
    Made const made(small("local-p", "shaw"));
    auto const ids = [](Tokens const& tokens) { return Tensor::of(tokens, {std::ssize(tokens)}); };
    auto const decoding = made.model.decode(given, {});
    decoding->keep(Tokens{2, 1, 0});  // before anything was read
    decoding->scores(ids({0, 3, 4}));
    decoding->keep(Tokens{2, 0, 2});
    Tensor const found = decoding->scores(ids({5, 6, 2}));
    std::vector<Tokens> const read{{4, 5}, {0, 6}, {4, 2}};
    for (Index row = 0; row < 3; ++row) {
      Batch const source = rows_of(given, {row == 1 ? 2 : 0});
      Tensor const expected =
          made.model.logits(batch_of(source["source"], source["source_lengths"], Tensor::of(at(read, row), {1, 2})), {});
      check_close(found.rows(row, 1), expected.viewed({2, vocabulary}).rows(1, 1), 1e-11);
    }
  }

  TEST_CASE("a model without a source decodes none") {
    Parameters parameters(3, DType::float64);
    Gpt const model(parameters, GptSettings(), vocabulary);
    CHECK_THROWS_WITH_AS(greedy(model, some_sources(1), begin, end, max_length), doctest::Contains("decode: "), Error);
    CHECK_THROWS_WITH_AS(greedy(model, {}, begin, end, max_length), doctest::Contains("decode: "), Error);
  }

  TEST_CASE_FIXTURE(NoGrad, "a row's sample depends on its number alone, and has the model's score") {
    for (std::string const read : {"soft", "hard"}) {
      CAPTURE(read);
      TransformerSettings of_model = small();
      of_model.attention.read = read;
      of_model.attention.estimator.evaluate = "sample";
      Made const made(of_model);
      Batch const given = some_sources(9);
      SamplingSettings settings;
      settings.temperature = 1.5;
      settings.top_k = 5;
      Stream const stream(11, "sample");
      Tokens const longest{9, 9, 2, 9, 0, 9, 9, 9, 1};
      auto const found = sample(made.model, given, begin, end, longest, settings, stream);
      std::set<std::size_t> lengths;
      for (std::size_t row = 0; row < found.size(); ++row) {
        Pass pass;
        pass.decoding.sequences = {row};
        Batch const alone = rows_of(given, {static_cast<Index>(row)});
        check_same(sample(made.model, alone, begin, end, longest[row], settings, stream, pass).front(), found[row]);
        CHECK(std::abs(found[row].score - score_of(made.model, alone, found[row], pass)) < 1e-12);
        CHECK((found[row].ended || std::ssize(found[row].tokens) == longest[row]));
        lengths.insert(found[row].tokens.size());
      }
      CHECK(lengths.size() > 2);
    }
  }

  TEST_CASE("without temperature a sample is greedy") {
    Made const made(small());
    Batch const given = some_sources(9);
    SamplingSettings settings;
    settings.temperature = 0;
    check_same(sample(made.model, given, begin, end, max_length, settings, Stream(1, "s")),
               greedy(made.model, given, begin, end, max_length));
  }

  TEST_CASE("samples are as frequent as they are probable") {
    Told model;
    model.table = {{{}, logs({0.1, 0.2, 0.3, 0.4})}, {{2}, logs({0, 0.5, 0, 0.5})}};
    constexpr Index rows = 4000;
    std::map<Tokens, double> shares;
    for (Decoded const& each : sample(model, some_sources(rows), begin, end, 2, {}, Stream(1, "s"))) shares[each.tokens] += 1.0 / rows;
    for (auto const& [tokens, p] : std::map<Tokens, double>{{{}, 0.2}, {{2}, 0.15}, {{2, 3}, 0.15}, {{3}, 0.1}, {{0, 0}, 0.025}})
      CHECK(std::abs(shares[tokens] - p) < 4 * std::sqrt(p * (1 - p) / rows));
    CHECK(shares.count({2, 0}) == 0);
  }
}
