#include "nn/decode.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include <doctest/doctest.h>

#include "autograd/error.hpp"
#include "autograd/graph.hpp"
#include "nn/generate.hpp"
#include "nn/models/gpt.hpp"
#include "nn/models/transformer.hpp"

// Caches, beams and batches, held against plain code that decodes one row with a whole pass for every token.

TEST_SUITE("decode") {
  using namespace heed;

  namespace {

  using Tokens = std::vector<std::int64_t>;

  constexpr std::int64_t vocabulary = 7, begin = 0, end = 1, most = 9;

  // ---------------------------------------------------------------- models and sources

  TransformerSettings small(std::string const& attention = "scaled", std::string const& position = "sinusoidal") {
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

  /// With parameters far from uniform.
  struct Made {
    explicit Made(TransformerSettings const& settings, DType dtype = DType::float64, std::int64_t words = vocabulary)
        : parameters(3, dtype, wide()), model(parameters, settings, words) {}
    static InitSettings wide() {
      InitSettings init;
      init.std = 0.7;
      return init;
    }
    Parameters parameters;
    Transformer model;
  };

  Batch batch_of(Tensor const& source, Tensor const& lengths, Tensor const& inputs = {}) {
    return {{"source", source}, {"source_lengths", lengths}, {"inputs", inputs}};
  }

  Batch some_sources(std::int64_t rows) {
    Stream const stream(5, "source");
    Tokens tokens, lengths;
    for (std::int64_t i = 0; i < rows * 8; ++i)
      tokens.push_back(static_cast<std::int64_t>(stream.below(static_cast<std::uint64_t>(i), vocabulary)));
    for (std::int64_t row = 0; row < rows; ++row) lengths.push_back(1 + (row * 3) % 8);
    return batch_of(Tensor::of(tokens, {rows, 8}), Tensor::of(lengths, {rows}));
  }

  /// These rows, in this order.
  Batch rows_of(Batch const& batch, Tokens const& rows) {
    std::vector<Tensor> source, lengths;
    for (std::int64_t const row : rows) {
      source.push_back(batch["source"].rows(row, 1).to(DType::float64));
      lengths.push_back(batch["source_lengths"].rows(row, 1).to(DType::float64));
    }
    return batch_of(concatenate(source, 0).to(DType::int64), concatenate(lengths, 0).to(DType::int64));
  }

  // ---------------------------------------------------------------- plain code

  /// The logarithms of the probabilities of what follows these tokens, by a whole pass over one row.
  std::vector<double> logs_after(Model const& model, Batch const& row, Tokens tokens, Pass const& pass) {
    tokens.insert(tokens.begin(), begin);
    auto const n = std::ssize(tokens);
    Tensor const logits = model.logits(batch_of(row["source"], row["source_lengths"], Tensor::of(tokens, {1, n})), pass);
    return log_softmax(logits.viewed({n, model.vocabulary()}).rows(n - 1, 1).to(DType::float64), -1).to_vector();
  }

  /// The logarithm of the probability of a target, by one pass.
  double score_of(Model const& model, Batch const& row, Decoded const& target, Pass const& pass) {
    Tokens inputs = target.tokens;
    inputs.insert(inputs.begin(), begin);
    auto const n = std::ssize(inputs);
    Tensor const logits = model.logits(batch_of(row["source"], row["source_lengths"], Tensor::of(inputs, {1, n})), pass);
    Tensor const logs = log_softmax(logits.to(DType::float64), -1);
    double sum = target.ended ? logs.at((n - 1) * model.vocabulary() + end) : 0;
    for (std::int64_t i = 0; i + 1 < n; ++i) sum += logs.at(i * model.vocabulary() + inputs[static_cast<std::size_t>(i + 1)]);
    return sum;
  }

  double rank(Decoded const& hypothesis, double alpha) {
    double const length = static_cast<double>(hypothesis.tokens.size()) + (hypothesis.ended ? 1 : 0);
    return hypothesis.score / std::pow((5 + length) / 6, alpha);
  }

  void sort_by_rank(std::vector<Decoded>& hypotheses, double alpha) {
    std::ranges::stable_sort(hypotheses, [&](Decoded const& a, Decoded const& b) {
      return rank(a, alpha) != rank(b, alpha) ? rank(a, alpha) > rank(b, alpha) : a.tokens < b.tokens;
    });
  }

  /// Beam search of one row that never stops early.
  std::vector<Decoded> plain_beam(Model const& model, Batch const& row, std::int64_t longest, BeamSettings const& settings,
                                  std::int64_t last = end, Pass const& pass = {}) {
    std::vector<Decoded> live(1), finished;
    for (std::int64_t step = 0; step < longest && !live.empty(); ++step) {
      std::vector<Decoded> all;
      for (Decoded const& each : live) {
        auto const logs = logs_after(model, row, each.tokens, pass);
        for (std::int64_t token = 0; token < model.vocabulary(); ++token) {
          Decoded longer = each;
          longer.tokens.push_back(token);
          longer.score += logs[static_cast<std::size_t>(token)];
          all.push_back(longer);
        }
      }
      std::ranges::sort(all,
                        [](Decoded const& a, Decoded const& b) { return a.score != b.score ? a.score > b.score : a.tokens < b.tokens; });
      all.resize(std::min(all.size(), static_cast<std::size_t>(settings.width)));
      live.clear();
      for (Decoded& each : all) {
        each.ended = each.tokens.back() == last;
        if (each.ended) each.tokens.pop_back();
        (each.ended ? finished : live).push_back(each);
      }
    }
    finished.insert(finished.end(), live.begin(), live.end());
    sort_by_rank(finished, settings.length_penalty);
    finished.resize(std::min(finished.size(), static_cast<std::size_t>(settings.width)));
    return finished;
  }

  void check_same(Decoded const& found, Decoded const& expected, double bound = 1e-12) {
    CHECK(found.tokens == expected.tokens);
    CHECK(found.ended == expected.ended);
    CHECK(std::abs(found.score - expected.score) <= bound * std::max(1.0, -expected.score));
  }

  void check_same(std::vector<Decoded> const& found, std::vector<Decoded> const& expected, double bound = 1e-12) {
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) check_same(found[i], expected[i], bound);
  }

  double bound_of(DType dtype) { return dtype == DType::float64 ? 1e-12 : 1e-5; }

  // ---------------------------------------------------------------- a model whose scores are told

  /// The next token's scores by the tokens read since the beginning, whatever the source; every token equal where nothing is told.
  struct Told : Model {
    std::map<Tokens, std::vector<double>> table;
    std::int64_t words = 4;
    mutable int reads = 0;

    struct Step : Decoding {
      Step(Told const& model, std::int64_t rows) : told(model), read(static_cast<std::size_t>(rows)) {}
      Tensor scores(Tensor const& tokens) override {
        ++told.reads;
        std::vector<double> all;
        for (std::size_t row = 0; row < read.size(); ++row) {
          read[row].push_back(tokens.data<std::int64_t>()[row]);
          auto const found = told.table.find({read[row].begin() + 1, read[row].end()});
          auto const one = found != told.table.end() ? found->second : std::vector<double>(static_cast<std::size_t>(told.words));
          all.insert(all.end(), one.begin(), one.end());
        }
        return Tensor::of(all, {std::ssize(read), told.words});
      }
      void restart() override { read.assign(read.size(), {}); }
      void keep(std::span<std::int64_t const> rows) override {
        std::vector<Tokens> kept;
        for (std::int64_t const row : rows) kept.push_back(read[static_cast<std::size_t>(row)]);
        read = kept;
      }
      Told const& told;
      std::vector<Tokens> read;
    };

    std::unique_ptr<Decoding> decode(Batch const& given, Pass const&) const override { return std::make_unique<Step>(*this, given.rows()); }
    Outcome run(Batch const&, Pass const&) const override { return {}; }
    std::int64_t context() const override { return 100; }
    std::int64_t vocabulary() const override { return words; }
    std::int64_t width() const override { return 1; }
    double peak_bytes(PassShape const&) const override { return 0; }
    double flops_per_token() const override { return 0; }
  };

  std::vector<double> logs(std::vector<double> probabilities) {
    std::ranges::transform(probabilities, probabilities.begin(), [](double p) { return std::log(p); });
    return probabilities;
  }

  }  // namespace

  // ---------------------------------------------------------------- greedy

  TEST_CASE("many rows with caches are decoded as each alone without any") {
    NoGrad const quiet;
    constexpr std::int64_t rows = 12;
    Batch const given = some_sources(rows);
    for (std::string const attention : {"scaled", "additive", "general", "local-m", "local-p"}) {
      for (std::string const position : {"none", "learned", "sinusoidal", "rotary", "alibi", "t5", "shaw"}) {
        for (DType const dtype : {DType::float64, DType::float32}) {
          CAPTURE(attention);
          CAPTURE(position);
          TransformerSettings settings = small(attention, position);
          settings.norm.place = position == "t5" ? "pre" : "post";
          Made const made(settings, dtype);
          auto const together = greedy(made.model, given, begin, end, most);
          REQUIRE(together.size() == rows);
          for (std::int64_t row = 0; row < rows; ++row)
            check_same(together[static_cast<std::size_t>(row)],
                       plain_beam(made.model, rows_of(given, {row}), most, {.width = 1, .length_penalty = 0}).front(), bound_of(dtype));
        }
      }
    }
  }

  TEST_CASE("a row that ends leaves the others as they are") {
    Made const made(small());
    Batch const given = some_sources(40);
    auto const endless = greedy(made.model, given, begin, -1, most);
    std::set<std::size_t> lengths;
    for (std::int64_t last = 0; last < vocabulary; ++last) {
      auto const found = greedy(made.model, given, begin, last, most);
      for (std::size_t row = 0; row < found.size(); ++row) {
        auto const& all = endless[row].tokens;
        CHECK(found[row].tokens == std::vector(all.begin(), std::ranges::find(all, last)));
        CHECK(found[row].ended == (found[row].tokens.size() < all.size()));
        lengths.insert(found[row].tokens.size());
      }
    }
    CHECK(lengths.size() > 2);
  }

  TEST_CASE("rows that go on may change places and be told apart twice") {
    NoGrad const quiet;
    Batch const given = some_sources(3);
    Made const made(small("local-p", "shaw"));
    auto const ids = [](Tokens const& tokens) { return Tensor::of(tokens, {std::ssize(tokens)}); };
    auto const decoding = made.model.decode(given, {});
    decoding->keep(Tokens{2, 1, 0});  // before anything was read
    decoding->scores(ids({0, 3, 4}));
    decoding->keep(Tokens{2, 0, 2});
    Tensor const found = decoding->scores(ids({5, 6, 2}));
    std::vector<Tokens> const read{{4, 5}, {0, 6}, {4, 2}};
    for (std::int64_t row = 0; row < 3; ++row) {
      Batch const source = rows_of(given, {row == 1 ? 2 : 0});
      Tensor const expected = made.model.logits(
          batch_of(source["source"], source["source_lengths"], Tensor::of(read[static_cast<std::size_t>(row)], {1, 2})), {});
      for (std::int64_t v = 0; v < vocabulary; ++v)
        CHECK(found.at(row * vocabulary + v) == doctest::Approx(expected.at(vocabulary + v)).epsilon(1e-11));
    }
  }

  TEST_CASE("a model without a source decodes none") {
    Parameters parameters(3, DType::float64);
    Gpt const model(parameters, GptSettings(), vocabulary);
    CHECK_THROWS_WITH_AS(greedy(model, some_sources(1), begin, end, most), doctest::Contains("decode: "), Error);
  }

  // ---------------------------------------------------------------- beams

  TEST_CASE("beams of many rows are those of each alone, of every score, align and position") {
    NoGrad const quiet;
    constexpr std::int64_t rows = 4;
    Batch const given = some_sources(rows);
    BeamSettings const beam_of_3{.width = 3, .length_penalty = 0.6};
    std::size_t number = 0;
    for (auto const& score : step_kinds<Score>()) {
      for (auto const& align : step_kinds<Align>()) {
        for (std::string const& position : position_names()) {
          TransformerSettings settings = small("scaled", position);
          settings.norm.place = number % 2 == 0 ? "pre" : "post";
          settings.attention.score = score.name;
          settings.attention.align = align.name;
          settings.attention.window = 3;
          DType const dtype = number++ % 3 == 0 ? DType::float32 : DType::float64;
          CAPTURE(score.name);
          CAPTURE(align.name);
          CAPTURE(position);
          Made const made(settings, dtype);
          auto const together = beam(made.model, given, begin, end, 6, beam_of_3);
          for (std::int64_t row = 0; row < rows; ++row)
            check_same(together[static_cast<std::size_t>(row)], plain_beam(made.model, rows_of(given, {row}), 6, beam_of_3),
                       bound_of(dtype));
        }
      }
    }
  }

  TEST_CASE("of hard reads, whatever they read while evaluating") {
    NoGrad const quiet;
    constexpr std::int64_t rows = 6;
    Batch const given = some_sources(rows);
    for (std::string const evaluate : {"argmax", "expectation", "sample"}) {
      CAPTURE(evaluate);
      TransformerSettings settings = small("scaled", "rotary");
      settings.attention.read = "hard";
      settings.attention.estimator.evaluate = evaluate;
      Made const made(settings);
      Pass pass;
      pass.choosing = Stream(7, "choosing");
      pass.sequences = {30, 10, 50, 20, 0, 40};
      auto const together = beam(made.model, given, begin, end, most, {.width = 3, .length_penalty = 1}, pass);
      std::set<Tokens> different;
      for (std::size_t row = 0; row < rows; ++row) {
        Batch const alone = rows_of(given, {static_cast<std::int64_t>(row)});
        Pass of_row = pass;
        of_row.sequences = {pass.sequences[row]};
        check_same(together[row], plain_beam(made.model, alone, most, {.width = 3, .length_penalty = 1}, end, of_row));
      }
      for (std::uint64_t number = 0; number < 20; ++number) {
        Pass numbered = pass;
        numbered.sequences = {number};
        different.insert(greedy(made.model, rows_of(given, {2}), begin, end, most, numbered).front().tokens);
      }
      CHECK((different.size() > 1) == (evaluate == "sample"));
      pass.sequences.pop_back();
      CHECK_THROWS_WITH_AS(beam(made.model, given, begin, end, most, {}, pass), doctest::Contains("none of row 5"), Error);
    }
  }

  TEST_CASE("a beam as wide as the space finds its best") {
    NoGrad const quiet;
    constexpr std::int64_t words = 4, longest = 4;
    Made const made(small(), DType::float64, words);
    Batch given = some_sources(5);
    for (auto& token : given["source"].mutable_data<std::int64_t>()) token %= words;
    for (double const alpha : {0.0, 0.6, 1.0, 2.5}) {
      CAPTURE(alpha);
      auto const found = beam(made.model, given, begin, end, longest, {.width = 256, .length_penalty = alpha});
      for (std::int64_t row = 0; row < 5; ++row) {
        std::vector<Decoded> all;
        std::function<void(Decoded const&)> const visit = [&](Decoded const& target) {
          if (target.ended || std::ssize(target.tokens) == longest) return all.push_back(target);
          for (std::int64_t token = 0; token < words; ++token) {
            Decoded longer = target;
            longer.ended = token == end;
            if (!longer.ended) longer.tokens.push_back(token);
            visit(longer);
          }
        };
        visit({});
        for (Decoded& each : all) each.score = score_of(made.model, rows_of(given, {row}), each, {});
        sort_by_rank(all, alpha);
        check_same(found[static_cast<std::size_t>(row)], all);
      }
    }
  }

  TEST_CASE("no row's beam depends on the others, their order, or how many tokens they may have") {
    NoGrad const quiet;
    Made const made(small("scaled", "learned"));
    Batch const given = some_sources(7);
    Tokens const longest{5, 0, 9, 1, 7, 2, 9}, order{4, 6, 0, 2, 5, 3, 1};
    BeamSettings const settings{.width = 4, .length_penalty = 0.8};
    auto const found = beam(made.model, given, begin, end, longest, settings);
    std::vector<Decoded> best;
    for (std::size_t row = 0; row < 7; ++row) {
      Batch const alone = rows_of(given, {static_cast<std::int64_t>(row)});
      check_same(found[row], plain_beam(made.model, alone, longest[row], settings));
      check_same(found[row], beam(made.model, alone, begin, end, longest[row], settings).front());
    }
    Tokens reordered;
    for (std::int64_t const row : order) reordered.push_back(longest[static_cast<std::size_t>(row)]);
    auto const again = beam(made.model, rows_of(given, order), begin, end, reordered, settings);
    for (std::size_t i = 0; i < 7; ++i) check_same(again[i], found[static_cast<std::size_t>(order[i])]);
    CHECK_THROWS_WITH_AS(beam(made.model, given, begin, end, Tokens{1, 2}, settings), doctest::Contains("each of the 7 rows"), Error);
  }

  TEST_CASE("without room there is no token, and without an end all is used") {
    Made const made(small());
    Batch const given = some_sources(3);
    for (std::int64_t const none : {0, -1}) {
      auto const found = beam(made.model, given, begin, end, none, {});
      REQUIRE(found.size() == 3);
      for (auto const& of_row : found) check_same(of_row, {Decoded{}});
      for (Decoded const& of_row : greedy(made.model, given, begin, end, none)) check_same(of_row, {});
      for (Decoded const& of_row : sample(made.model, given, begin, end, none, {}, Stream(1, "s"))) check_same(of_row, {});
    }
    for (std::int64_t row = 0; row < 3; ++row) {
      auto const found = beam(made.model, rows_of(given, {row}), begin, -1, 5, {.width = 3, .length_penalty = 1}).front();
      check_same(found, plain_beam(made.model, rows_of(given, {row}), 5, {.width = 3, .length_penalty = 1}, -1));
      for (Decoded const& each : found) CHECK((each.tokens.size() == 5 && !each.ended));
    }
  }

  TEST_CASE("a penalty lets longer hypotheses win") {
    Told model;  // "end" with 0.5, or 2, 2, end with 0.5 · 0.9 · 0.9
    model.table = {{{}, logs({0, 0.5, 0.49, 0.01})}, {{2}, logs({0, 0.05, 0.9, 0.05})}, {{2, 2}, logs({0, 0.9, 0.05, 0.05})}};
    auto const best = [&](double alpha) {
      return beam(model, some_sources(1), begin, end, 3, {.width = 2, .length_penalty = alpha}).front().front();
    };
    check_same(best(0), {{}, std::log(0.5), true});
    check_same(best(2), {{2, 2}, std::log(0.49 * 0.9 * 0.9), true});
    CHECK(length_penalty(1, 2) == 1);
    CHECK(length_penalty(7, 0.5) == doctest::Approx(std::sqrt(2)));
    CHECK(length_penalty(30, 0) == 1);
    CHECK_THROWS_WITH_AS(best(-1), doctest::Contains("length penalty -1"), Error);
    CHECK_THROWS_WITH_AS(best(std::nan("")), doctest::Contains("length penalty nan"), Error);
    CHECK_THROWS_WITH_AS(beam(model, some_sources(1), begin, end, 3, {.width = 0, .length_penalty = 0}), doctest::Contains("width 0"),
                         Error);
  }

  TEST_CASE("of equal scores the lower tokens win") {
    Told const model;  // all tokens equal
    auto const found = beam(model, some_sources(2), begin, 3, 2, {.width = 5, .length_penalty = 0});
    std::vector<Tokens> tokens;
    for (Decoded const& each : found[1]) tokens.push_back(each.tokens);
    CHECK(tokens == std::vector<Tokens>{{}, {0}, {0, 0}, {0, 1}, {0, 2}});  // the first with 1/4, the others with 1/16
  }

  TEST_CASE("what is impossible is no hypothesis") {
    double const never = -std::numeric_limits<double>::infinity();
    Told model;
    model.table = {{{}, {never, never, 0, never}}, {{2}, {0, 0, never, never}}};
    auto const found = beam(model, some_sources(1), begin, end, 2, {.width = 4, .length_penalty = 0}).front();
    check_same(found, {{{2}, std::log(0.5), true}, {{2, 0}, std::log(0.5), false}});
  }

  TEST_CASE("a row stops when nothing that goes on can become one of its best") {
    Told model;
    model.table = {{{}, logs({0.01, 0.6, 0.39, 0})}, {{2}, logs({0.01, 0.98, 0.01, 0})}};
    auto const reads = [&](double alpha) {
      model.reads = 0;
      CHECK(beam(model, some_sources(3), begin, end, 50, {.width = 2, .length_penalty = alpha}).front().size() == 2);
      return model.reads;
    };
    CHECK(reads(0) == 2);  // two have ended with more than 0.38; 2, 0 has 0.004
    CHECK(reads(1) > 2);   // of 50 tokens it could be worth −5.6 / 9.2
    CHECK(reads(1) < 50);
  }

  TEST_CASE("scores that are no numbers are refused, with their row") {
    for (double const bad : {std::nan(""), std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}) {
      Told model;
      model.table = {{{}, logs({0.1, 0.2, 0.3, 0.4})}, {{3}, {bad, bad, bad, bad}}};
      auto const two = some_sources(2);
      CHECK_THROWS_WITH_AS(greedy(model, two, begin, end, Tokens{1, 3}), doctest::Contains("row 1"), NonFinite);
      CHECK_THROWS_WITH_AS(beam(model, two, begin, end, Tokens{1, 3}, {}), doctest::Contains("row 1"), NonFinite);
      SamplingSettings largest;
      largest.temperature = 0;
      CHECK_THROWS_WITH_AS(sample(model, two, begin, end, Tokens{1, 3}, largest, Stream(1, "s")), doctest::Contains("row 1"), NonFinite);
    }
  }

  // ---------------------------------------------------------------- samples

  TEST_CASE("a row's sample depends on its number alone, and has the model's score") {
    NoGrad const quiet;
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
        pass.sequences = {row};
        Batch const alone = rows_of(given, {static_cast<std::int64_t>(row)});
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
    check_same(sample(made.model, given, begin, end, most, settings, Stream(1, "s")), greedy(made.model, given, begin, end, most));
  }

  TEST_CASE("samples are as frequent as they are probable") {
    Told model;
    model.table = {{{}, logs({0.1, 0.2, 0.3, 0.4})}, {{2}, logs({0, 0.5, 0, 0.5})}};
    constexpr std::int64_t rows = 4000;
    std::map<Tokens, double> shares;
    for (Decoded const& each : sample(model, some_sources(rows), begin, end, 2, {}, Stream(1, "s"))) shares[each.tokens] += 1.0 / rows;
    for (auto const& [tokens, p] : std::map<Tokens, double>{{{}, 0.2}, {{2}, 0.15}, {{2, 3}, 0.15}, {{3}, 0.1}, {{0, 0}, 0.025}})
      CHECK(std::abs(shares[tokens] - p) < 4 * std::sqrt(p * (1 - p) / rows));
    CHECK(shares.count({2, 0}) == 0);
  }
}
