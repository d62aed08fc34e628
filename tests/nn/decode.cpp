#include "nn/decode.hpp"

#include <algorithm>
#include <set>

#include <doctest/doctest.h>

#include "autograd/error.hpp"
#include "autograd/graph.hpp"
#include "nn/models/gpt.hpp"
#include "nn/models/transformer.hpp"

TEST_SUITE("decode") {
  using namespace heed;

  namespace {

  constexpr std::int64_t vocabulary = 7, begin = 0, end = 1, most = 9;

  TransformerSettings small(std::string const& attention, std::string const& position) {
    TransformerSettings settings;
    settings.layers = 2;
    settings.heads = 2;
    settings.width = 8;
    settings.context = 12;
    settings.tie = false;  // or a token would be followed by itself, for ever
    settings.position = position;
    settings.attention.from_word(attention);
    return settings;
  }

  InitSettings wide() {
    InitSettings init;  // far from uniform
    init.std = 0.7;
    return init;
  }

  Batch some_sources(std::int64_t rows) {
    Stream const stream(5, "source");
    std::vector<std::int64_t> tokens, lengths;
    for (std::int64_t i = 0; i < rows * 8; ++i)
      tokens.push_back(static_cast<std::int64_t>(stream.below(static_cast<std::uint64_t>(i), vocabulary)));
    for (std::int64_t row = 0; row < rows; ++row) lengths.push_back(1 + (row * 3) % 8);
    return {{"source", Tensor::of(tokens, {rows, 8})}, {"source_lengths", Tensor::of(lengths, {rows})}};
  }

  Batch row_of(Batch const& batch, std::int64_t row) {
    return {{"source", batch["source"].rows(row, 1)}, {"source_lengths", batch["source_lengths"].rows(row, 1)}};
  }

  /// The same as greedy() of one row, with a whole pass for every token.
  Decoded without_cache(Model const& model, Batch row) {
    Decoded result;
    std::vector<std::int64_t> read{begin};
    for (std::int64_t step = 0; step < most; ++step) {
      row.set("inputs", Tensor::of(read, {1, step + 1}));
      Tensor const logits = model.logits(row, {}).viewed({step + 1, vocabulary}).rows(step, 1);
      Tensor const logs = log_softmax(logits.to(DType::float64), -1);
      std::int64_t const token = argmax(logs, -1).data<std::int64_t>()[0];
      result.score += logs.at(token);
      if (token == end) return result;
      result.tokens.push_back(token);
      read.push_back(token);
    }
    return result;
  }

  }  // namespace

  TEST_CASE("many rows with caches are decoded as each alone without any") {
    NoGrad const quiet;
    constexpr std::int64_t rows = 12;
    Batch const given = some_sources(rows);
    for (std::string const attention : {"scaled", "additive", "general", "local-m", "local-p", "{sparsemax}"}) {
      for (std::string const position : {"none", "learned", "sinusoidal", "rotary", "alibi", "t5", "shaw"}) {
        for (DType const dtype : {DType::float64, DType::float32}) {
          CAPTURE(attention);
          CAPTURE(position);
          TransformerSettings settings = small(attention == "{sparsemax}" ? "scaled" : attention, position);
          if (attention == "{sparsemax}") settings.attention.align = "sparsemax";
          settings.norm.place = position == "t5" ? "pre" : "post";
          Parameters parameters(3, dtype, wide());
          Transformer const model(parameters, settings, vocabulary);
          auto const together = greedy(model, given, begin, end, most);
          REQUIRE(together.size() == rows);
          for (std::int64_t row = 0; row < rows; ++row) {
            auto const& found = together[static_cast<std::size_t>(row)];
            auto const alone = without_cache(model, row_of(given, row));
            CHECK(found.tokens == alone.tokens);
            CHECK(std::abs(found.score - alone.score) <= (dtype == DType::float64 ? 1e-12 : 1e-5) * std::max(1.0, -alone.score));
          }
        }
      }
    }
  }

  TEST_CASE("a row that ends leaves the others as they are") {
    Parameters parameters(3, DType::float64, wide());
    Transformer const model(parameters, small("scaled", "sinusoidal"), vocabulary);
    Batch const given = some_sources(40);
    auto const endless = greedy(model, given, begin, -1, most);
    std::set<std::size_t> lengths;
    for (std::int64_t last = 0; last < vocabulary; ++last) {
      auto const found = greedy(model, given, begin, last, most);
      for (std::size_t row = 0; row < found.size(); ++row) {
        auto const& all = endless[row].tokens;
        CHECK(found[row].tokens == std::vector(all.begin(), std::ranges::find(all, last)));
        lengths.insert(found[row].tokens.size());
      }
    }
    CHECK(lengths.size() > 2);
    CHECK(greedy(model, given, begin, end, 0)[1].tokens.empty());
  }

  TEST_CASE("rows that go on may change places and be told apart twice") {
    NoGrad const quiet;
    Batch const given = some_sources(3);
    Parameters parameters(3, DType::float64, wide());
    Transformer const model(parameters, small("local-p", "shaw"), vocabulary);
    auto const ids = [](std::vector<std::int64_t> const& tokens) { return Tensor::of(tokens, {std::ssize(tokens)}); };
    auto const decoding = model.decode(given);
    decoding->keep(std::vector<std::int64_t>{2, 1, 0});  // before anything was read
    decoding->scores(ids({0, 3, 4}));
    decoding->keep(std::vector<std::int64_t>{2, 0, 2});
    Tensor const found = decoding->scores(ids({5, 6, 2}));
    std::vector<std::vector<std::int64_t>> const read{{4, 5}, {0, 6}, {4, 2}};
    for (std::int64_t row = 0; row < 3; ++row) {
      Batch alone = row_of(given, row == 1 ? 2 : 0);
      alone.set("inputs", Tensor::of(read[static_cast<std::size_t>(row)], {1, 2}));
      Tensor const expected = model.logits(alone, {});
      for (std::int64_t v = 0; v < vocabulary; ++v)
        CHECK(found.at(row * vocabulary + v) == doctest::Approx(expected.at(vocabulary + v)).epsilon(1e-11));
    }
  }

  TEST_CASE("a model without a source decodes none") {
    Parameters parameters(3, DType::float64);
    Gpt const model(parameters, GptSettings(), vocabulary);
    CHECK_THROWS_WITH_AS(greedy(model, some_sources(1), begin, end, most), doctest::Contains("decode: "), Error);
  }
}
