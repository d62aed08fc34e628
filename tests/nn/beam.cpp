#include "nn/decode.hpp"
#include "tests/nn/small_transformer.hpp"

TEST_SUITE("beam") {
  using namespace heed;
  using namespace heed::test;

  TEST_CASE_FIXTURE(NoGrad, "beams of many rows are those of each alone, of every score, align and position") {
    constexpr Index rows = 4;
    Batch const given = some_sources(rows);
    BeamSettings const beam_of_3{.width = 3, .length_penalty = 0.6};
    std::size_t number = 0;
    for (auto const& score : Registry<ScoreKind>::all())
      for (auto const& align : Registry<AlignKind>::all())
        for (std::string const& position : Registry<PositionKind>::names()) {
          if (position_kind(position).of_the_past) continue;
          TransformerSettings settings = small("scaled", position);
          settings.norm.placement = number % 2 == 0 ? "pre" : "post";
          settings.attention.score = score.name;
          settings.attention.align = align.name;
          settings.attention.set("window", 3.0);
          DType const dtype = number++ % 3 == 0 ? DType::float32 : DType::float64;
          INFO("score.name ", score.name, ", align.name ", align.name, ", position ", position);
          Made const made(settings, dtype);
          auto const together = beam(made.model, given, begin, end, 6, beam_of_3);
          for (Index row = 0; row < rows; ++row)
            check_same(at(together, row), plain_beam(made.model, rows_of(given, {row}), 6, beam_of_3), bound_of(dtype));
        }
  }

  TEST_CASE_FIXTURE(NoGrad, "of hard reads, whatever they read while evaluating") {
    constexpr Index rows = 6;
    Batch const given = some_sources(rows);
    for (std::string const evaluate : {"argmax", "expectation", "sample"}) {
      CAPTURE(evaluate);
      TransformerSettings settings = small("scaled", "rotary");
      settings.attention.read = "hard";
      settings.attention.estimator.evaluate = evaluate;
      Made const made(settings);
      Pass pass;
      pass.decoding.choosing = Stream(7, "choosing");
      pass.decoding.sequences = {30, 10, 50, 20, 0, 40};
      auto const together = beam(made.model, given, begin, end, max_length, {.width = 3, .length_penalty = 1}, pass);
      std::set<Tokens> different;
      for (std::size_t row = 0; row < rows; ++row) {
        Batch const alone = rows_of(given, {static_cast<Index>(row)});
        Pass of_row = pass;
        of_row.decoding.sequences = {pass.decoding.sequences[row]};
        check_same(together[row], plain_beam(made.model, alone, max_length, {.width = 3, .length_penalty = 1}, end, of_row));
      }
      for (std::uint64_t number = 0; number < 20; ++number) {
        Pass numbered = pass;
        numbered.decoding.sequences = {number};
        different.insert(greedy(made.model, rows_of(given, {2}), begin, end, max_length, numbered).front().tokens);
      }
      CHECK((different.size() > 1) == (evaluate == "sample"));
      pass.decoding.sequences.pop_back();
      CHECK_THROWS_WITH_AS(beam(made.model, given, begin, end, max_length, {}, pass), doctest::Contains("none of row 5"), Error);
    }
  }

  TEST_CASE_FIXTURE(NoGrad, "a beam as wide as the space finds its best") {
    constexpr Index words = 4, longest = 4;
    Made const made(small(), DType::float64, words);
    Batch given = some_sources(5);
    for (auto& token : given["source"].mutable_data<std::int64_t>()) token %= words;
    for (double const alpha : {0.0, 0.6, 1.0, 2.5}) {
      CAPTURE(alpha);
      auto const found = beam(made.model, given, begin, end, longest, {.width = 256, .length_penalty = alpha});
      for (Index row = 0; row < 5; ++row) {
        std::vector<Decoded> all;
        std::function<void(Decoded const&)> const visit = [&](Decoded const& target) {
          if (target.ended || std::ssize(target.tokens) == longest) return all.push_back(target);
          for (Index token = 0; token < words; ++token) {
            Decoded longer = target;
            longer.ended = token == end;
            if (!longer.ended) longer.tokens.push_back(token);
            visit(longer);
          }
        };
        visit({});
        for (Decoded& each : all) each.score = score_of(made.model, rows_of(given, {row}), each, {});
        sort_by_rank(all, alpha);
        check_same(at(found, row), all);
      }
    }
  }

  TEST_CASE_FIXTURE(NoGrad, "no row's beam depends on the others, their order, or how many tokens they may have") {
    Made const made(small("scaled", "learned"));
    Batch const given = some_sources(7);
    Tokens const longest{5, 0, 9, 1, 7, 2, 9}, order{4, 6, 0, 2, 5, 3, 1};
    BeamSettings const settings{.width = 4, .length_penalty = 0.8};
    auto const found = beam(made.model, given, begin, end, longest, settings);
    std::vector<Decoded> best;
    for (std::size_t row = 0; row < 7; ++row) {
      Batch const alone = rows_of(given, {static_cast<Index>(row)});
      check_same(found[row], plain_beam(made.model, alone, longest[row], settings));
      check_same(found[row], beam(made.model, alone, begin, end, longest[row], settings).front());
    }
    Tokens reordered;
    for (Index const row : order) reordered.push_back(at(longest, row));
    auto const again = beam(made.model, rows_of(given, order), begin, end, reordered, settings);
    for (std::size_t i = 0; i < 7; ++i) check_same(again[i], at(found, order[i]));
    CHECK_THROWS_WITH_AS(beam(made.model, given, begin, end, Tokens{1, 2}, settings), doctest::Contains("each of the 7 sequences"), Error);
  }

  TEST_CASE("without room there is no token, and without an end all is used") {
    Made const made(small());
    Batch const given = some_sources(3);
    for (Index const none : {0, -1}) {
      auto const found = beam(made.model, given, begin, end, none, {});
      REQUIRE(found.size() == 3);
      for (auto const& of_row : found) check_same(of_row, {Decoded{}});
      for (Decoded const& of_row : greedy(made.model, given, begin, end, none)) check_same(of_row, {});
      for (Decoded const& of_row : sample(made.model, given, begin, end, none, {}, Stream(1, "s"))) check_same(of_row, {});
    }
    for (Index row = 0; row < 3; ++row) {
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

  TEST_CASE("a target has 50 tokens more than its source, as far as the model's context; of what has none, the context") {
    Made const made(small());
    auto const tokens = [](Index n) { return Tensor::full({2, n}, 3, DType::int64); };
    Batch const given{{"source", tokens(7)}, {"source_lengths", Tensor::of(Tokens{7, 3}, {2})}};
    for (auto const row : {std::size_t{0}, std::size_t{1}}) {
      Index const source = row == 0 ? 7 : 3;
      CHECK(longest_targets(given, made.model)[row] == std::min<Index>(source + 50, made.model.context()));
      CHECK(longest_targets({{"source", tokens(9)}}, made.model)[row] == std::min<Index>(59, made.model.context()));
      CHECK(longest_targets({{"image", tokens(9)}}, made.model)[row] == made.model.context());
    }
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
      CHECK_THROWS_WITH_AS(greedy(model, two, begin, end, Tokens{1, 3}), doctest::Contains("sequence 1"), NonFinite);
      CHECK_THROWS_WITH_AS(beam(model, two, begin, end, Tokens{1, 3}, {}), doctest::Contains("sequence 1"), NonFinite);
      SamplingSettings largest;
      largest.temperature = 0;
      CHECK_THROWS_WITH_AS(sample(model, two, begin, end, Tokens{1, 3}, largest, Stream(1, "s")), doctest::Contains("sequence 1"),
                           NonFinite);
    }
  }
}
