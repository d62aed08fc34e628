#include "autograd/ops/recurrence.hpp"
#include "nn/attention/attention.hpp"
#include "nn/models/recurrent/recurrent_settings.hpp"
#include "nn/optimizer.hpp"
#include "tests/nn/choice.hpp"
#include "tests/nn/plain_decoding.hpp"

TEST_SUITE("recurrent_seq2seq") {
  using namespace heed;
  using namespace heed::test;

  namespace {

  RecurrentSeq2seqSettings tiny(std::string const& attention, std::string const& cell = "lstm", bool bidirectional = false) {
    RecurrentSeq2seqSettings settings;
    settings.cell = cell;
    settings.width = 6;
    settings.embedding = 5;
    settings.context = 12;
    settings.bidirectional = bidirectional;
    REQUIRE(settings.attention.from_word(attention));
    return settings;
  }

  struct Subject : PairModel {
    explicit Subject(RecurrentSeq2seqSettings const& settings) : PairModel("recurrent_seq2seq", settings, vocabulary) {}
  };

  /// Every way in which a decoder may look or not, with both kinds of encoder, fed or not.
  std::vector<RecurrentSeq2seqSettings> ways() {
    std::vector<RecurrentSeq2seqSettings> all;
    for (std::string const attention : {"none", "bahdanau", "luong", "additive", "local-m", "local-p", "hard"})
      for (bool const bidirectional : {false, true})
        for (bool const fed : {false, true}) {
          if (fed && attention == "bahdanau") continue;
          all.push_back(tiny(attention, all.size() % 2 == 0 ? "lstm" : "gru", bidirectional));
          all.back().input_feeding = fed;
          all.back().layers = 1 + static_cast<Index>(all.size() / 2 % 2);
          all.back().reverse_source = !bidirectional && fed;
          all.back().norm = all.size() % 5 == 4 ? "layer" : "none";
        }
    return all;
  }

  std::string name_of(RecurrentSeq2seqSettings const& s) {
    return fmt::format("{}, {} {} {}, {} layers, both ways {}, from the end {}, fed {}, {}, norm {}", s.cell, s.attention.style,
                       s.attention.score, s.attention.align, s.layers, s.bidirectional, s.reverse_source, s.input_feeding, s.attention.read,
                       s.norm);
  }

  }  // namespace

  TEST_CASE("what stands behind the lengths of source and target changes no bit of any result or gradient") {
    Batch const batch = padded_pairs(vocabulary, false), other = padded_pairs(vocabulary, true);
    for (RecurrentSeq2seqSettings settings : ways()) {
      settings.dropout = 0.1;
      CAPTURE(name_of(settings));
      for (bool const composed : {false, true}) {
        CAPTURE(composed);
        std::optional<ReferenceAttention> no_kernels;
        std::optional<ReferenceCells> no_scan;
        if (composed) no_kernels.emplace(), no_scan.emplace();
        Subject subject(settings);
        CHECK(results(subject.model, subject.parameters, batch) == results(subject.model, subject.parameters, other));
      }
    }
  }

  TEST_CASE("every score, align and read, in both styles: constructs, trains a step, pads without changing a bit") {
    Batch const batch = padded_pairs(vocabulary, false), other = padded_pairs(vocabulary, true);
    int accepted = 0;
    for (auto const& score : Registry<ScoreKind>::all())
      for (auto const& align : Registry<AlignKind>::all())
        for (auto const& read : Registry<ReadKind>::all())
          for (std::string const style : {"bahdanau", "luong"})
            for (bool const bidirectional : {false, true}) {
              RecurrentSeq2seqSettings settings = tiny("luong", "gru", bidirectional);
              settings.attention.style = style;
              settings.attention.score = score.name;
              settings.attention.align = align.name;
              settings.attention.read = read.name;
              if (settings.attention.contradiction()) continue;
              CAPTURE(name_of(settings));
              ++accepted;
              Subject subject(settings);
              CHECK(results(subject.model, subject.parameters, batch) == results(subject.model, subject.parameters, other));
              double const before = subject.model.loss(batch, {}).item();
              subject.parameters.clear_gradients();
              subject.model.loss(batch, {}).backward();
              make_optimizer(chosen(optimizer_choice(), "sgd"), subject.parameters)->step(1e-3);
              double const after = subject.model.loss(batch, {}).item();
              CHECK(std::isfinite(after));
              if (read.name == "soft") CHECK(after < before);
            }
    CHECK(accepted >= 4 * 7 * 6);
  }

  TEST_CASE("the gradient of the whole model, with padding") {
    for (RecurrentSeq2seqSettings settings : ways()) {
      if (settings.attention.read == "hard" || settings.attention.align == "local_p") continue;  // choices; a window's edge
      settings.width = 3, settings.embedding = 2;
      CAPTURE(name_of(settings));
      check_pair_gradient("recurrent_seq2seq", settings, 0.7, 8);
    }
  }

  TEST_CASE_FIXTURE(NoGrad, "what is decoded has the scores of a pass that is told the words; rows do not depend on their neighbours") {
    constexpr Index rows = 6;
    Batch const given = some_sources(rows);
    for (RecurrentSeq2seqSettings const& settings : ways()) {
      CAPTURE(name_of(settings));
      Subject const subject(settings);
      auto const together = greedy(subject.model, given, begin, end, max_length);
      auto const beams = beam(subject.model, given, begin, end, max_length, {.width = 3});
      for (std::size_t row = 0; row < rows; ++row) {
        Batch const alone = rows_of(given, {static_cast<Index>(row)});
        check_same(together[row], plain_beam(subject.model, alone, max_length, {.width = 1, .length_penalty = 0}).front());
        check_same(beams[row], plain_beam(subject.model, alone, max_length, {.width = 3}));
        CHECK(std::abs(score_of(subject.model, alone, beams[row][0], {}) - beams[row][0].score) < 1e-10);
      }
    }
  }

  TEST_CASE_FIXTURE(NoGrad, "a decoding may read several words at once, begin again, and tell rows apart") {
    Batch const given = some_sources(3);
    for (RecurrentSeq2seqSettings const& settings : ways()) {
      CAPTURE(name_of(settings));
      Subject const subject(settings);
      auto const decoding = subject.model.decode(given, {});
      decoding->scores(Tensor::of(Tokens{3, 3, 3}, {3}));
      decoding->restart();
      decoding->scores(Tensor::of(Tokens{0, 4, 0, 5, 0, 6}, {3, 2}));
      decoding->keep(Tokens{2, 0, 2});
      Tensor const found = decoding->scores(Tensor::of(Tokens{1, 2, 3}, {3}));
      std::vector<Tokens> const read{{0, 6, 1}, {0, 4, 2}, {0, 6, 3}};
      for (Index row = 0; row < 3; ++row) {
        Batch const source = rows_of(given, {row == 1 ? 0 : 2});
        Tensor const inputs = Tensor::of(at(read, row), {1, 3});
        Tensor const expected = subject.model.logits(batch_of(source["source"], source["source_lengths"], inputs), {});
        check_close(found.rows(row, 1), expected.viewed({3, vocabulary}).rows(2, 1), 1e-11);
      }
    }
  }

  TEST_CASE("all steps at once are the steps one by one, which scheduled sampling without luck takes") {
    for (std::string const attention : {"none", "luong", "local-p", "hard"}) {
      CAPTURE(attention);
      RecurrentSeq2seqSettings settings = tiny(attention);
      settings.layers = 2;
      Subject at_once(settings);
      settings.scheduled_sampling = 1e-15;
      Subject by_steps(settings);
      auto const one = results(at_once.model, at_once.parameters, some_pairs(vocabulary)),
                 other = results(by_steps.model, by_steps.parameters, some_pairs(vocabulary));
      REQUIRE(one.size() == other.size());
      for (std::size_t i = 1; i < one.size(); ++i) REQUIRE(one[i] == doctest::Approx(other[i]).epsilon(1e-9));
    }
  }

  TEST_CASE("scheduled sampling reads words of the model's own, as often as it says, while training alone") {
    RecurrentSeq2seqSettings settings = tiny("luong");
    settings.scheduled_sampling = 0.5;
    settings.scheduled_sampling_steps = 100;
    CHECK(settings.scheduled_sample(0) == 0);
    CHECK(settings.scheduled_sample(50) == 0.25);
    CHECK(settings.scheduled_sample(1000) == 0.5);
    Subject const subject(settings);
    auto const scores = [&](Index step, bool trains) {
      Pass pass;
      pass.training.step = step;
      if (trains) pass.training.noise = Stream(2, "noise");
      return subject.model.logits(some_pairs(vocabulary), pass).to_vector();
    };
    CHECK(scores(1000, false) == scores(0, false));
    CHECK(scores(1000, true) == scores(1000, true));
    auto const own = scores(1000, true), given = scores(1000, false);
    CHECK(own != given);
    CHECK(std::equal(own.begin(), own.begin() + vocabulary, given.begin(), [](double a, double b) { return std::abs(a - b) < 1e-12; }));
  }

  TEST_CASE("a decoder's attention is one layer to an observer, whose scores have gradients step by step") {
    for (std::string const attention : {"luong", "bahdanau"}) {
      CAPTURE(attention);
      Subject const subject(tiny(attention, "gru", true));
      RecordedPass const recorded({.weights = true, .scores = true, .inputs = true});
      Tensor const loss = subject.model.loss(some_pairs(vocabulary), recorded.pass);
      auto const records = recorded.records();
      REQUIRE(records.size() == 1);
      AttentionRecord const& record = records[0];
      CHECK(record.layer == "attention");
      CHECK(record.scores.shape() == Shape{3, 1, 7, 9});
      CHECK(record.weights.shape() == Shape{3, 1, 7, 9});
      CHECK(record.query.shape() == Shape{3, 7, 6});
      Tensor const sums = sum(record.weights, {-1});
      for (Index i = 0; i < sums.elements(); ++i)  // a place behind a target's length sees nothing
        CHECK(sums.at(i) == doctest::Approx(i % 7 < at(target_lengths, i / 7) ? 1 : 0));
      CHECK(std::ssize(record.steps) == (attention == "luong" ? 1 : 7));
      CHECK(max(abs(grad(loss, record.steps[0]))).item() > 0);
    }
  }

  TEST_CASE("a choice reaches its place alone, or where it enters the next step those after it") {
    for (bool const fed : {false, true}) {
      RecurrentSeq2seqSettings settings = tiny("hard");
      settings.input_feeding = fed;
      Subject const subject(settings);
      ChoosingPass const choosing;
      subject.model.logits(some_pairs(vocabulary), choosing.pass);
      auto const& made = choosing.choices.made;
      REQUIRE(made.size() == 1);
      CHECK(made[0].probability.shape() == Shape{3, 1, 7});
      CHECK(made[0].reach == (fed ? HardChoices::Reach::later : HardChoices::Reach::position));
      CHECK(subject.model.estimator() != nullptr);
    }
  }

  TEST_CASE("a source read from its end gives what its reverse gives, each state at its own word") {
    RecurrentSeq2seqSettings settings = tiny("none");
    Subject const forward(settings);
    settings.reverse_source = true;
    Subject const backward(settings);
    Batch batch = some_pairs(vocabulary), reversed = batch;
    Tensor source = batch["source"].clone();
    auto const words = source.mutable_data<std::int64_t>();
    for (std::size_t row = 0; row < 3; ++row) std::ranges::reverse(words.subspan(row * 9, static_cast<std::size_t>(source_lengths[row])));
    reversed.set("source", source);
    CHECK(forward.model.logits(reversed, {}).to_vector() == backward.model.logits(batch, {}).to_vector());
  }

  TEST_CASE("settings that mean nothing are refused by their key; a short word is a style or a way to attend") {
    CHECK(tiny("bahdanau").attention.score == "additive");
    CHECK(said(tiny("bahdanau"), [](auto& s) { s.input_feeding = true; }).starts_with("input_feeding: "));
    CHECK(tiny("local-p").attention.style == "luong");
    CHECK(said(tiny("local-p", "lstm", true), [](auto& s) { s.reverse_source = true; }).starts_with("reverse_source: "));
    CHECK(said(tiny("none").attention, [](auto& s) { s.align = "sparsemax"; }).starts_with("style: "));
    RecurrentSeq2seqSettings settings = tiny("luong");
    settings.attention.score = "location";
    Subject const subject(settings);
    CHECK(subject.model.limit() == 12);
    CHECK_THROWS_WITH_AS(subject.model.check({{"source", random_tokens({1, 13}, vocabulary, "source")}}),
                         doctest::Contains("model.context: a source has 13"), Error);
    CHECK_FALSE(Subject(tiny("luong")).model.limit());
  }

  TEST_CASE("only what a score wants is projected") {
    auto const names = [](std::string const& attention, bool bidirectional) {
      Subject const subject(tiny(attention, "gru", bidirectional));
      std::set<std::string> found;
      for (auto const& [name, value] : subject.parameters.all())
        if (name.starts_with("attention.") || name.starts_with("bridge")) found.insert(name);
      return found;
    };
    using Names = std::set<std::string>;
    CHECK(names("dot", false).empty());
    CHECK(names("dot", true) == Names{"attention.key.weight", "bridge.bias", "bridge.weight"});
    CHECK(names("luong", true) == Names{"attention.score.matrix", "bridge.bias", "bridge.weight"});
    CHECK(names("bahdanau", false) ==
          Names{"attention.key.weight", "attention.query.weight", "attention.score.vector", "bridge.bias", "bridge.weight"});
  }
}
