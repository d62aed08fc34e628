// Whatever the engine refuses of a model is refused before anything trains, at the place of a key: every kind of model, with positions,
// scores, aligns, reads, keys of attention and shapes, is checked and then makes a step.

#include "nn/attention/steps.hpp"
#include "nn/position.hpp"
#include "tests/experiments/written.hpp"
#include "tests/program.hpp"
#include "tests/refusal.hpp"
#include "tests/rooms.hpp"

TEST_SUITE("refusals") {
  using namespace heed;

  namespace {

  using Words = std::vector<std::string>;

  /// A kind of model, data that it reads, and what its attention is called.
  struct Subject {
    std::string kind, data, keys;
    Words rooms = {};  ///< that the program must have for it
  };
  std::vector<Subject> const subjects{
      {"gpt", "{kind: copy, length: 2, vocabulary: 4, validation: 2}", "layers: 1, context: 6"},
      {"bert", "{kind: copy, length: 2, vocabulary: 4, validation: 2, forced: false}", "layers: 1, context: 6"},
      {"transformer", "{kind: pairs, task: {kind: reverse, length: 2}, validation: 2}", "layers: 1, context: 6", {"translation"}},
  };
  std::vector<Subject> const without_positions{
      {"single_attention", "{kind: recall, pairs: 2, keys: 3, values: 3, queries: 1, validation: 2}", "pairs: 2, keys: 3, width: 4"},
      {"recurrent_seq2seq",
       "{kind: pairs, task: {kind: reverse, length: 2}, validation: 2}",
       "width: 5, embedding: 3, context: 6",
       {"recurrent", "translation"}},
      {"captioner",
       "{kind: glyphs, rows: 2, columns: 2, most: 2, validation: 2}",
       "convolutions: 2, channels: 8, width: 5, embedding: 3",
       {"captioning"}},
  };

  std::vector<Subject> built(std::vector<Subject> all) {
    std::erase_if(all, [](Subject const& subject) { return !std::ranges::all_of(subject.rooms, test::has_room); });
    return all;
  }

  Words const shapes{
      "width: 8, heads: 2",
      "width: 6, heads: 2",
      "width: 4, heads: 4",
      "width: 12, heads: 2",
      "width: 6, heads: 2, key_width: 4",
      "width: 8, heads: 2, key_width: 3",
      "width: 7, heads: 2, key_width: 3, value_width: 5",
      "width: 2, heads: 4, key_width: 2, value_width: 1",
      "width: 6, heads: 4",
      "width: 8, heads: 4, key_heads: 2",
      "width: 12, heads: 4, key_heads: 1",
      "width: 8, heads: 4, key_heads: 3",
  };
  Words const attention_keys{"", "softcap: 2", "query_key_norm: rms", "gate: true", "forget: true", "differential: true"};

  /// Counts of what was refused and what has made a step.
  struct Tally {
    int refused = 0, trained = 0;
    std::set<std::string> keys;  ///< that refusals begin with
  };

  /// Checks a configuration and, if it is not refused, makes a step and an evaluation, which nothing may refuse.
  void examine(std::string const& model, std::string const& data, Tally& tally, std::string const& train = "") {
    std::string const text =
        fmt::format("data: {}\nmodel: {{{}}}\ntrain: {{steps: 1, batch: 2{}}}\n", data, model, train.empty() ? "" : ", " + train);
    CAPTURE(text);
    std::optional<LoadedExperiment> loaded;
    std::optional<Trainer> trainer;
    std::string const refusal = test::refusal<ConfigError>([&] { trainer.emplace(loaded.emplace(test::written(text)), true); });
    if (refusal.empty()) {
      Row row;
      CHECK(test::refusal([&] { trainer->train_step(row), trainer->evaluate(row); }) == "");
      ++tally.trained;
      return;
    }
    CAPTURE(refusal);
    ++tally.refused;
    CHECK(refusal.starts_with("test:"));
    CHECK(refusal.find("a training step is refused") == std::string::npos);  // that message names no key
    auto const key = refusal.substr(refusal.find(": ") + 2);
    CHECK((key.starts_with("model.") || key.starts_with("train.")));
    tally.keys.insert(key.substr(0, key.find(':')));
  }

  std::string with(Subject const& subject, std::string const& more) {
    return fmt::format("kind: {}, {}{}{}", subject.kind, subject.keys, more.empty() ? "" : ", ", more);
  }

  /// "attention: {score: …}", with a key more.
  std::string attention(std::string const& score, std::string const& align = "softmax", std::string const& read = "soft",
                        std::string const& key = "") {
    return fmt::format("attention: {{score: {}, align: {}, read: {}{}{}}}", score, align, read, key.empty() ? "" : ", ", key);
  }

  }  // namespace

  TEST_CASE("every position with every shape and key of attention") {
    for (auto const& subject : built(subjects)) {
      Tally tally;
      for (auto const& position : Registry<PositionKind>::names())
        for (auto const& shape : shapes)
          for (auto const& key : attention_keys)
            examine(with(subject, shape + ", position: " + position + ", " + attention("scaled_dot", "softmax", "soft", key)), subject.data,
                    tally);
      CHECK(tally.refused > 0);
      CHECK(tally.trained > tally.refused);
      for (char const* key : {"model.position", "model.heads", "model.key_heads"}) CHECK(tally.keys.contains(key));
    }
  }

  TEST_CASE("every score with every shape, position and key of attention") {
    for (auto const& subject : built(subjects)) {
      Tally tally;
      for (auto const& score : Registry<ScoreKind>::names()) {
        for (auto const& shape : shapes) examine(with(subject, shape + ", " + attention(score)), subject.data, tally);
        for (auto const& position : Registry<PositionKind>::names())
          for (char const* shape : {"width: 6, heads: 2", "width: 8, heads: 4, key_heads: 2"})
            examine(with(subject, fmt::format("{}, position: {}, {}", shape, position, attention(score))), subject.data, tally);
        for (auto const& key : attention_keys)
          examine(with(subject, "width: 8, heads: 2, " + attention(score, "softmax", "soft", key)), subject.data, tally);
      }
      CHECK(tally.trained > tally.refused);
    }
  }

  TEST_CASE("every score with every align and read, in every kind of model") {
    for (auto const* const kinds : {&subjects, &without_positions})
      for (auto const& subject : built(*kinds)) {
        Tally tally;
        for (auto const& score : Registry<ScoreKind>::names())
          for (auto const& align : Registry<AlignKind>::names())
            for (auto const& read : Registry<ReadKind>::names()) {
              std::string const shape = kinds == &subjects ? "width: 8, heads: 2, " : "";
              examine(with(subject, shape + attention(score, align, read)), subject.data, tally);
            }
        CHECK(tally.trained > tally.refused);
        if (kinds == &without_positions)
          for (auto const& key : attention_keys) examine(with(subject, attention("dot", "softmax", "soft", key)), subject.data, tally);
      }
  }

  TEST_CASE("attention of a decoder to its source: every key and shape" * test::needs("translation")) {
    Subject const& subject = subjects.back();
    REQUIRE(subject.kind == "transformer");
    Tally tally;
    for (auto const& shape : shapes)
      for (auto const& key : attention_keys)
        for (auto const& score : Registry<ScoreKind>::names())
          examine(with(subject, shape + ", cross_" + attention(score, "softmax", "soft", key)), subject.data, tally);
    CHECK(tally.refused > 0);
    CHECK(tally.trained > tally.refused);
  }

  TEST_CASE("every estimator in every kind of model, with blocks that are run again") {
    for (auto const* const kinds : {&subjects, &without_positions})
      for (auto const& subject : built(*kinds))
        for (char const* estimator : {"reinforce", "straight_through", "gumbel", "enumerate", "marginal"})
          for (char const* train : {"", "recompute: true", "precision: bfloat16"}) {
            Tally tally;
            std::string const shape = kinds == &subjects ? "width: 4, heads: 1, " : "";
            examine(with(subject, shape + attention("dot", "softmax", "hard", fmt::format("estimator: {}", estimator))), subject.data,
                    tally, train);
          }
  }

  TEST_CASE("an estimator whose reward is a token's likelihood beside a head that predicts no tokens: the place of its key") {
    test::Folder const folder;
    std::string const hard = "attention: {score: dot, align: softmax, read: hard, estimator: reinforce}";
    test::put(folder / "head.yaml",
              "name: head\ndata: {kind: topic, training: 10, validation: 5}\nmodel: {kind: gpt, layers: 1, heads: 1, width: 4, " + hard +
                  ", head: classification}\ntrain: {steps: 1, batch: 2}\n");
    auto const file = (folder / "head.yaml").string(), runs = (folder / "runs").string();
    for (char const* command : {"check", "run"})
      test::refuses({command, file, "--output", runs}, 2,
                    {"head.yaml:3:", "model.attention.estimator: hard attention needs a model that predicts tokens"});
    CHECK(!std::filesystem::exists(folder / "runs"));
  }

  TEST_CASE("single_attention with other numbers of pairs or keys than the data, which the first batch need not show") {
    for (std::string const data : {"kind: recall, queries: 1", "kind: lookup, questions: 1"})
      for (int const keys : {12, 13, 14, 15, 16, 17, 18})
        for (int const pairs : {2, 3, 4}) {
          auto const loaded = test::written(fmt::format(
              "data: {{{}, pairs: 3, keys: 15, values: 9, validation: 2}}\n"
              "model: {{kind: single_attention, pairs: {}, keys: {}, question: {}, readout: linear}}\ntrain: {{steps: 1, batch: 1}}\n",
              data, pairs, keys, data.starts_with("kind: recall") ? 1 : 2));
          std::string const said = test::refusal<ConfigError>([&] { Trainer(loaded, true); });
          CAPTURE(said);
          CHECK(said.empty() == (keys == 15 && pairs == 3));
          if (pairs == 3 && keys != 15)
            CHECK(said.ends_with(fmt::format("model.keys: {}, but data.keys is 15: the model reads as many", keys)));
        }
  }

  TEST_CASE_FIXTURE(test::InFolder, "an odd width of heads that are to turn: the place of the position, in check, plan and run") {
    test::put(folder / "base.yaml",
              "name: odd\ndata: {kind: copy, length: 2, vocabulary: 4}\nmodel:\n  kind: gpt\n  layers: 1\n  heads: 2\n  width: 6\n"
              "  context: 4\ntrain: {steps: 2, batch: 2}\n");
    test::put(folder / "odd.yaml", "ablation: odd\nbase: base.yaml\nvary: {model.position: [learned, rotary]}\nseeds: 2\n");
    auto const base = (folder / "base.yaml").string(), ablation = (folder / "odd.yaml").string(), runs = (folder / "runs").string();
    for (char const* command : {"check", "run"})
      test::refuses({command, base, "model.position=rotary", "--output", runs}, 2,
                    {"argument 'model.position=rotary': model.position: 'rotary' rotates pairs of entries", "3", "key_width"});
    for (char const* command : {"check", "run", "plan"})
      test::refuses({command, ablation, "--output", runs}, 2, {"odd.yaml:3:", "model.position: 'rotary' rotates pairs"});
    CHECK(!std::filesystem::exists(folder / "runs"));
  }
}
