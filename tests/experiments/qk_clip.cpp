// QK-clip: scores after it, against plain loops over scores; what stays; resuming; refusals. (Several processes: mpi.cpp.)

#include "nn/qk_clip.hpp"

#include "nn/models/blocks.hpp"
#include "tests/experiments/refused.hpp"
#include "tests/experiments/said.hpp"
#include "tests/experiments/trace.hpp"
#include "tests/nn/models.hpp"

TEST_SUITE("qk_clip") {
  using namespace heed;

  namespace {

  constexpr Index vocabulary = 9, heads = 4, width = 16;

  Batch batch(std::uint64_t seed) { return {{"inputs", test::random_tokens({3, 7}, vocabulary, "inputs", seed)}}; }

  /// Of each head of the only layer, over two passes, from the whole matrices of scores.
  std::vector<double> plain_largest(Gpt const& gpt) {
    std::vector<double> largest(heads, -1e9);
    for (std::uint64_t seed = 1; seed <= 2; ++seed) {
      test::RecordedPass recorded({.scores = true});
      gpt.run(batch(seed), recorded.pass);
      Tensor const scores = recorded.records().at(0).scores;  // [B, H, n, n]
      for (Index at = 0; at < scores.elements(); ++at) {
        Index const j = at % 7, i = at / 7 % 7, h = at / 49 % heads;
        if (j <= i) largest[static_cast<std::size_t>(h)] = std::max(largest[static_cast<std::size_t>(h)], scores.at(at));
      }
    }
    return largest;
  }

  std::vector<double> largest(Gpt const& gpt, QueryKeyClip& clip) {
    Pass pass;
    pass.watching.observer = clip.watch(nullptr);
    for (std::uint64_t seed = 1; seed <= 2; ++seed) gpt.run(batch(seed), pass);
    return clip.largest();
  }

  void check_close(std::vector<double> const& found, std::vector<double> const& expected) {
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == doctest::Approx(expected[i]).epsilon(1e-12));
  }

  StackSettings one_layer() {
    auto settings = test::sized<GptSettings>(1, heads, width, 8);
    settings.position = "rotary";
    return settings;
  }

  }  // namespace

  TEST_CASE("the largest score of a head becomes τ where it was larger; all else stays, bit by bit") {
    for (Index const key_heads : {4, 2, 1})
      for (std::string const scale : {"rsqrt", "learned"}) {
        INFO("key_heads ", key_heads, ", scale ", scale);
        auto settings = one_layer();
        settings.key_heads = key_heads, settings.attention.scale = scale;
        Parameters parameters(3, DType::float64, test::wide(0.4));
        Gpt const gpt(parameters, settings, vocabulary);
        for (auto [name, parameter] : parameters.all())  // biases, too, are far from zero
          if (name.ends_with("bias")) copy_elements(test::some(parameter.shape(), name), parameter);
        auto const before = plain_largest(gpt);
        auto sorted = before;
        std::ranges::sort(sorted);
        double const threshold = (sorted[1] + sorted[2]) / 2;  // two heads are above it, two below
        REQUIRE(threshold > 0);
        QueryKeyClip clip(parameters, threshold);
        check_close(largest(gpt, clip), before);
        auto const weights = test::values_by_name(parameters);
        clip.clip(clip.largest());

        auto expected = before;
        for (double& score : expected) score = std::min(score, threshold);
        check_close(plain_largest(gpt), expected);
        auto const clipped = test::values_by_name(parameters);
        for (auto const& each_was : weights) {
          auto const& [name, was] = each_was;
          INFO(each_was.first);
          bool const query = name.find(".query.") != name.npos, key = name.find(".key.") != name.npos && key_heads == heads;
          std::vector<double> wanted = was;
          std::size_t const each = was.size() / heads;
          for (std::size_t i = 0; (query || key) && i < wanted.size(); ++i)
            if (double const score = before[i / each]; score > threshold)
              wanted[i] *= key_heads == heads ? std::sqrt(threshold / score) : threshold / score;
          if (query || key)
            check_close(clipped.at(name), wanted);
          else
            CHECK(clipped.at(name) == was);
        }
      }
  }

  TEST_CASE("scores below τ, and frozen weights, stay bit by bit; what others watch goes on to them") {
    Parameters parameters(3, DType::float64, test::wide(0.4));
    Gpt const gpt(parameters, one_layer(), vocabulary);
    auto const before = test::values_by_name(parameters);
    auto const scores = plain_largest(gpt);
    QueryKeyClip loose(parameters, std::ranges::max(scores) * 1.001), tight(parameters, 1e-3);
    loose.clip(largest(gpt, loose));
    CHECK(test::values_by_name(parameters) == before);

    test::RecordedPass recorded({.rows = true});
    Pass pass;
    pass.watching.observer = tight.watch(recorded.pass.watching.observer);
    gpt.run(batch(1), pass);
    CHECK(recorded.records().at(0).rows.size() == 1);
    for (auto [name, parameter] : parameters.all())
      if (name.find(".query.") != name.npos) parameter.set_frozen(true);
    tight.clip(largest(gpt, tight));
    for (auto const& [name, values] : test::values_by_name(parameters))
      CHECK((values == before.at(name)) == (name.find(".key.weight") == name.npos));
  }

  TEST_CASE_FIXTURE(test::InFolder, "a run that is resumed, or has more threads, is the same; the scores stay near τ") {
    test::put(folder / "q.yaml",
              "name: q\nseed: 3\ndata: {kind: grammar, validation: 16, ngram_sentences: 50}\n"
              "model: {kind: gpt, layers: 2, heads: 2, width: 32, context: 32, dropout: 0.1}\nprobes: {every: 10, attention: [max_score]}\n"
              "train: {steps: 30, batch: 2, accumulate: 2, optimizer: {lr: 1.0e-2}, ema: 0.9, evaluate: {every: 30}, qk_clip: 0.5}\n");
    auto const run = [&](std::string const& output, std::string const& threads, std::vector<std::string> const& more = {}) {
      test::run_well(test::joined({"run", folder / "q.yaml", "--quiet", "--output", folder / output, "--threads", threads}, more));
      return test::trace_of(folder / output / "q");
    };
    auto const largest = [&](std::string const& output) {
      double most = 0;
      auto const rows = test::json_rows<test::OrderedJson>(folder / output / "q/metrics.jsonl");
      for (auto const& [key, value] : rows.back().items())
        if (key.find("max_score") != key.npos) most = std::max(most, value.get<double>());
      return most;
    };
    auto const whole = run("whole", "1");
    CHECK(run("threads", "2").rows == whole.rows);
    run("parts", "1", {"train.steps=17"});
    CHECK(run("parts", "1").files.at("checkpoint.safetensors") == whole.files.at("checkpoint.safetensors"));
    run("free", "1", {"train.qk_clip=none"});
    CHECK(largest("whole") < 1);
    CHECK(largest("free") > 2);
  }

  TEST_CASE("scores that are not proportional to W_q and W_k are refused by place") {
    test::GoodRun const run({"name: bad", "data: {kind: copy}", "model: {kind: gpt, width: 32}", "train: {steps: 1, qk_clip: 100.0}"});
    auto const model = [](std::string const& keys) { return "model: {kind: gpt, width: 32, " + keys + "}"; };
    auto const said = [](std::string const& more) { return test::Words{"bad.yaml:4:", "train.qk_clip", more}; };
    run.refuses_lines({{3, model("attention: additive"), said("model.attention.score: additive")},
                       {3, model("attention: general"), said("model.attention.score: general")},
                       {3, model("attention: {score: cosine}"), said("model.attention.score: cosine")},
                       {3, model("attention: deltanet"), said("model.attention.linear: deltanet")},
                       {3, model("attention: {softcap: 30}"), said("model.attention.softcap")},
                       {3, model("attention: {query_key_norm: rms}"), said("model.attention.query_key_norm: rms")},
                       {3, model("attention: {forget: true}"), said("model.attention.forget")},
                       {3, model("attention: {differential: true}"), said("model.attention.differential")},
                       {3, model("position: alibi"), said("model.position: alibi")},
                       {3, model("layer_types: [scaled, additive]"), said("model.attention.score: additive")},
                       {3, "model: {kind: single_attention}", said("kind single_attention")},
                       {4, "train: {steps: 1, qk_clip: 0}", {"bad.yaml:4:", "train.qk_clip"}},
                       {4, "train: {steps: 1, qk_clip: -1.0}", {"bad.yaml:4:", "train.qk_clip"}},
                       {4, "train: {steps: 1, qk_clip: 100.0, adapters: {rank: 2}}", said("adapters")}});
  }
}
