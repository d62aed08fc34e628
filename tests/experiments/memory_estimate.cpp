#include "experiments/run/memory_estimate.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "nn/files/safetensors.hpp"
#include "tests/experiments/memory_share.hpp"
#include "tests/folder.hpp"
#include "tests/rooms.hpp"

TEST_SUITE("memory_estimate") {
  using namespace heed;

  namespace {

  LoadedExperiment experiment(std::string const& model, std::string const& more = "train: {steps: 10, batch: 4}\n",
                              std::string const& data = "grammar, validation: 400, ngram_sentences: 10, pack: true") {
    LoadedExperiment loaded{parse("data: {kind: " + data + "}\nmodel: {" + model + "}\n" + more, "test"), {}, {}};
    fill(loaded.document, loaded.settings);
    return loaded;
  }

  std::string gpt(std::string const& attention, std::int64_t context = 128, double dropout = 0, std::string const& more = "") {
    return fmt::format("kind: gpt, layers: 2, heads: 4, width: 64, context: {}, dropout: {}, attention: {}{}", context, dropout, attention,
                       more);
  }

  }  // namespace

  TEST_CASE("fused and composed attention, with dropout and without: within 20 % of the peak") {
    for (std::string const score : {"scaled_dot", "general", "cosine", "additive", "gaussian", "location"}) {
      for (std::string const align : {"softmax", "local_p", "sparsemax", "entmax15", "sigmoid"}) {
        for (double const dropout : {0.0, 0.1}) {
          CAPTURE(score);
          CAPTURE(align);
          CAPTURE(dropout);
          test::check_estimate(experiment(gpt(fmt::format("{{score: {}, align: {}}}", score, align), 128, dropout)));
        }
      }
    }
  }

  TEST_CASE("positions, activations, norms, recomputation, an average of the weights: within 20 % of the peak") {
    for (std::string const position : {"none", "rotary", "alibi", "t5", "shaw"}) {
      CAPTURE(position);
      test::check_estimate(experiment(gpt("scaled", 128, 0.1, ", position: " + position)));
    }
    for (std::string const activation : {"relu", "swiglu"}) {
      CAPTURE(activation);
      test::check_estimate(experiment(gpt("scaled", 128, 0, ", activation: " + activation)));
    }
    test::check_estimate(experiment(gpt("scaled", 128, 0, ", norm: {place: post}")));
    test::check_estimate(experiment("kind: bert, layers: 4, heads: 2, width: 64, context: 128, attention: additive"));
    test::check_estimate(experiment(gpt("scaled"), "train: {steps: 10, batch: 4, recompute: true, ema: 0.9}\n"));
    test::check_estimate(experiment(gpt("{score: additive, align: sigmoid}"), "train: {steps: 10, batch: 4, recompute: true}\n"));
  }

  TEST_CASE("what newer models do: within 20 % of the peak") {
    for (std::string const more : {"softcap: 20", "query_key_norm: rms", "gate: true", "forget: true", "differential: true"}) {
      for (std::string const score : {"scaled_dot", "additive"}) {
        CAPTURE(more);
        CAPTURE(score);
        test::check_estimate(experiment(gpt(fmt::format("{{score: {}, {}}}", score, more))));
      }
    }
    test::check_estimate(experiment(gpt("scaled", 128, 0, ", key_heads: 1")));
    test::check_estimate(experiment(gpt("additive", 128, 0, ", key_heads: 2")));
    test::check_estimate(experiment(gpt("scaled", 128, 0, ", position: kerple")));
  }

  TEST_CASE("heads for labelled examples, of one sequence a row and of several: within 20 % of the peak") {
    std::string const sizes = ", layers: 2, heads: 4, width: 64, context: 64", more = "train: {steps: 10, batch: 32}\n";
    auto const of = [](std::string const& kind) { return kind + ", training: 200, validation: 50, tokenizer: {kind: words}"; };
    test::check_estimate(experiment("kind: gpt, head: classification" + sizes, more, of("topic, words: 40")));
    test::check_estimate(
        experiment("kind: gpt, head: {kind: classification, features: weighted, pool: mean}" + sizes, more, of("topic, words: 40")));
    test::check_estimate(experiment("kind: gpt, head: {kind: choice, auxiliary: 0.5}" + sizes, more, of("continuation, options: 4")));
    if (test::has_room("recurrent"))
      test::check_estimate(
          experiment("kind: bert, head: {kind: span, recurrent: 32}" + sizes, more, of("matching_span, stretches: 6, length: 3")));
  }

  TEST_CASE("long sequences: within 20 % of the peak") {
    test::check_estimate(experiment(gpt("additive", 320, 0.1)));
    test::check_estimate(experiment(gpt("{score: additive, align: sparsemax}", 320, 0.1)));
    test::check_estimate(experiment(gpt("scaled", 320, 0.1, ", position: shaw")));
  }

  TEST_CASE("validation of longer sequences than those of training") {
    auto const bytes = [](std::string const& lengths) {
      auto const loaded =
          experiment(gpt("scaled", 128, 0, ", position: fire"), "train: {steps: 10, batch: 4, evaluate: {lengths: " + lengths + "}}\n");
      Trainer const trainer(loaded, true);
      return memory_estimate(loaded.settings, trainer.data(), trainer.model(), trainer.parameters()).pass;
    };
    CHECK(bytes("[64, 128]") == bytes("[]"));
    CHECK(bytes("[1536]") > 4 * 1536.0 * 1536 * 4);  // the scores of four heads, in float32
  }

  TEST_CASE("wide heads: within 20 % of the peak") {
    for (std::string const attention : {"scaled", "general", "additive", "{score: cosine, align: sparsemax}"}) {
      CAPTURE(attention);
      test::check_estimate(experiment("kind: gpt, layers: 2, heads: 1, width: 320, context: 96, attention: " + attention));
    }
  }

  TEST_CASE("hard reads and their samples: within 20 % of the peak") {
    for (std::string const estimator : {"reinforce", "straight_through", "gumbel"}) {
      for (int const samples : {1, 3}) {
        CAPTURE(estimator);
        CAPTURE(samples);
        test::check_estimate(experiment(gpt(fmt::format("{{read: hard, estimator: {}, samples: {}{}}}", estimator, samples,
                                                        estimator == "reinforce" ? ", expectation_rate: 0" : ""))));
      }
    }
  }

  TEST_CASE("one bare attention layer: within 20 % of the peak") {
    for (std::string const attention : {"scaled", "additive", "{score: additive, align: sparsemax}", "hard"}) {
      for (std::string const readout : {"fixed", "linear"}) {
        CAPTURE(attention);
        CAPTURE(readout);
        test::check_estimate(experiment(
            fmt::format("kind: single_attention, pairs: 32, keys: 64, width: 64, readout: {}, attention: {}", readout, attention),
            "train: {steps: 10, batch: 32}\n", "recall, pairs: 32, keys: 64, queries: 1"));
      }
    }
  }

  TEST_CASE("an encoder–decoder: within 20 % of the peak" * test::needs("translation")) {
    test::Folder const folder;
    Tensor const rows = Tensor::full({2, 4, 128}, 1, DType::int64), lengths = Tensor::full({2, 4}, 128, DType::int64);
    auto const file = folder / "pairs.safetensors";
    save_safetensors(file, {{"inputs", rows}, {"targets", rows}, {"source", rows}, {"source_lengths", lengths}});
    auto const pairs = [&](std::string const& attention, std::string const& more = "",
                           std::string const& rest = "train: {steps: 2, batch: 4}\n") {
      return experiment("kind: transformer, layers: 2, heads: 4, width: 64, context: 128, attention: " + attention + more, rest,
                        fmt::format("batches, vocabulary: 65, path: {}", file.string()));
    };
    for (std::string const attention : {"scaled", "additive", "local-p", "{score: additive, align: sparsemax}", "hard"}) {
      for (double const dropout : {0.0, 0.1}) {
        CAPTURE(attention);
        CAPTURE(dropout);
        test::check_estimate(pairs(attention, fmt::format(", dropout: {}", dropout)));
      }
    }
    test::check_estimate(pairs("scaled", ", norm: {place: pre}, activation: gelu"));
    test::check_estimate(pairs("scaled", ", cross_attention: {score: additive, align: entmax15}"));
    test::check_estimate(pairs("scaled", "", "train: {steps: 2, batch: 4, recompute: true}\n"));
    for (std::string const probes : {"attention: [entropy]", "gradients: [scores]", "curvature: [sharpness], iterations: 1"}) {
      CAPTURE(probes);
      test::check_estimate(pairs("scaled", "", "train: {steps: 2, batch: 4}\nprobes: {" + probes + "}\n"));
    }
  }

  TEST_CASE("an encoder–decoder on texts, by rows and by tokens: within 20 % of the peak" * test::needs("translation")) {
    test::Folder const folder;
    auto const text = [](int words) {
      std::string all;
      for (int line = 0, word = 0; line < 300; ++line) {
        for (int i = 0; i < words; ++i) all += std::to_string(word++ % 997) + " ";
        all += "\n";
      }
      return all;
    };
    for (int const words : {4, 20, 50, 90}) test::put(folder / fmt::format("t.{}", words), text(words));
    auto const pairs = [&](int from, int to, std::string const& keys, std::string const& model = "",
                           std::string const& rest = "train: {steps: 2, batch: 16}\n") {
      return experiment(
          "kind: transformer, layers: 2, heads: 4, width: 64, context: 128" + model, rest,
          fmt::format("parallel, train: {0}/t, validation: {0}/t, from: '{1}', to: '{2}'{3}", folder.path().string(), from, to, keys));
    };
    for (auto const& [from, to] : {std::pair(50, 20), std::pair(20, 50), std::pair(90, 4), std::pair(4, 90)}) {
      for (std::string const keys : {"", ", tokens: 1200", ", tokens: 1200, vocabularies: separate"}) {
        for (std::string const model : {"", ", dropout: 0.1", ", attention: additive", ", tie: false"}) {
          auto const lengths = fmt::format("{} to {}", from, to);
          CAPTURE(lengths);
          CAPTURE(keys);
          CAPTURE(model);
          test::check_estimate(pairs(from, to, keys, model));
        }
      }
      for (std::string const probes :
           {"attention: [entropy]", "gradients: [scores], batch: training", "curvature: [sharpness], iterations: 1"}) {
        CAPTURE(probes);
        test::check_estimate(pairs(from, to, ", tokens: 1200", "", "train: {steps: 2, batch: 12}\nprobes: {" + probes + "}\n"));
      }
    }
    test::check_estimate(pairs(50, 20, ", tokens: 1200", "", "train: {steps: 2, batch: 16, recompute: true}\n"));
    test::check_estimate(pairs(20, 50, ", tokens: 400", ", attention: hard"));
  }

  TEST_CASE("logits of a large vocabulary, block by block: within 20 % of the peak" * test::needs("translation")) {
    test::Folder const folder;
    std::string text;
    for (int line = 0, word = 0; line < 1000; ++line, text += "\n")
      for (int i = 0; i < 20; ++i) text += std::to_string(word++ % 9000) + " ";
    for (auto const* const language : {"t.de", "t.en"}) test::put(folder / language, text);
    auto const data = fmt::format("parallel, train: {0}/t, validation: {0}/t, from: de, to: en, tokens: 1500", folder.path().string());
    for (std::string const model : {"layers: 1, width: 64, mlp_width: 64", "layers: 3, width: 64", "layers: 1, width: 256"})
      for (std::string const probes : {"", "probes: {attention: [entropy]}\n"}) {
        CAPTURE(model);
        CAPTURE(probes);
        test::check_estimate(
            experiment("kind: transformer, heads: 4, context: 32, " + model, "train: {steps: 2, batch: 16}\n" + probes, data));
      }
  }

  TEST_CASE("what does not fit is refused with what it needs") {
    auto const loaded = experiment(gpt("additive"), "train: {steps: 10, batch: 1000000000}\n");
    CHECK_THROWS_WITH_AS(Trainer(loaded, true), doctest::Contains(": the model and a batch need about "), ConfigError);
    CHECK_THROWS_WITH_AS(Trainer(experiment("kind: gpt, width: 65536, layers: 1000, heads: 4"), true),
                         doctest::Contains(": the model and a batch need about "), ConfigError);
    auto const long_ones =
        experiment(gpt("scaled", 128, 0, ", position: fire"), "train: {steps: 10, batch: 4, evaluate: {lengths: [400000]}}\n");
    CHECK_THROWS_WITH_AS(Trainer(long_ones, true), doctest::Contains(": the model and a batch need about "),
                         ConfigError);  // scores: 2.6 TB
    CHECK_NOTHROW(Trainer(experiment(gpt("additive")), true));
  }

  TEST_CASE("measuring leaves nothing behind") {
    for (std::string const more : {"", ", accumulate: 2"}) {
      auto const loaded = experiment(gpt("scaled", 32, 0.1), "train: {steps: 10, batch: 4" + more + "}\nprobes: {attention: [entropy]}\n");
      Trainer trainer(loaded, true);
      Trainer measured(loaded, true);
      std::int64_t const live = memory_use().live;
      memory_estimate(loaded.settings, measured.data(), measured.model(), measured.parameters());
      CHECK(memory_use().live == live);
      CHECK(memory_use().peak == live);
      for (auto const& [name, parameter] : measured.parameters().all()) CHECK(!parameter.grad().defined());
      Row row, expected;
      measured.train_step(row);
      trainer.train_step(expected);
      CHECK(row.values == expected.values);
    }
  }

  TEST_CASE("what probes look at: within 20 % of the peak") {
    for (std::string const probes :
         {"attention: [entropy]", "gradients: [scores]", "attention: [entropy], rows: 12", "curvature: [sharpness], iterations: 1"}) {
      for (std::string const attention : {"scaled", "additive"}) {
        CAPTURE(probes);
        CAPTURE(attention);
        test::check_estimate(experiment(gpt(attention), "train: {steps: 10, batch: 4}\nprobes: {" + probes + "}\n"));
      }
    }
    for (std::string const more : {"", ", recompute: true"})
      test::check_estimate(experiment("kind: gpt, layers: 2, heads: 4, width: 128, context: 256",
                                      "train: {steps: 10, batch: 8" + more + "}\nprobes: {curvature: [sharpness], iterations: 2}\n"));
    for (int const layers : {2, 6})
      test::check_estimate(experiment(fmt::format("kind: gpt, layers: {}, heads: 4, width: 64, context: 128", layers),
                                      "train: {steps: 10, batch: 4, recompute: true}\nprobes: {curvature: [sharpness], iterations: 2}\n"));
  }
}
