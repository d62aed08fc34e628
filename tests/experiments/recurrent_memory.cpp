#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "nn/files/safetensors.hpp"
#include "tests/experiments/memory_share.hpp"
#include "tests/folder.hpp"

TEST_SUITE("recurrent_memory") {
  using namespace heed;

  namespace {

  LoadedExperiment experiment(std::string const& data, std::string const& model) {
    LoadedExperiment loaded{
        parse(fmt::format("data: {{{}}}\nmodel: {{{}}}\ntrain: {{steps: 2, batch: 16}}\n", data, model), "test"), {}, {}};
    fill(loaded.document, loaded.settings);
    return loaded;
  }

  }  // namespace

  TEST_CASE("a recurrent language model: within 20 % of the peak") {
    for (std::string const cell : {"tanh", "gru", "lstm"}) {
      for (std::string const more : {"", ", layers: 2, dropout: 0.2", ", norm: layer", ", tie: true"}) {
        CAPTURE(cell);
        CAPTURE(more);
        test::check_estimate(experiment("kind: grammar, validation: 400, ngram_sentences: 10, pack: true",
                                        "kind: recurrent_lm, width: 96, context: 64, cell: " + cell + more));
      }
    }
  }

  TEST_CASE("a recurrent encoder–decoder: within 20 % of the peak") {
    test::Folder const folder;
    auto const file = folder / "pairs.safetensors";
    for (std::int64_t const length : {40, 90}) {
      Tensor const rows = Tensor::full({2, 16, length}, 1, DType::int64),
                   lengths = Tensor::full({2, 16}, static_cast<double>(length), DType::int64);
      save_safetensors(file, {{"inputs", rows}, {"targets", rows}, {"source", rows}, {"source_lengths", lengths}});
      auto const data = fmt::format("kind: batches, vocabulary: 65, path: {}", file.string());
      for (std::string const attention :
           {"none", "bahdanau", "luong", "local-p", "additive", "hard", "{score: additive, align: sparsemax}"}) {
        for (std::string const more :
             {"", ", bidirectional: true, layers: 2, dropout: 0.1", ", cell: gru", ", input_feeding: true", ", norm: layer"}) {
          if (attention == "bahdanau" && more.find("feeding") != std::string::npos) continue;
          CAPTURE(length);
          CAPTURE(attention);
          CAPTURE(more);
          test::check_estimate(experiment(
              data,
              fmt::format("kind: recurrent_seq2seq, width: 64, embedding: 48, context: {}, attention: {}{}", length, attention, more)));
        }
      }
    }
  }

  TEST_CASE("a captioner: within 20 % of the peak") {
    for (std::string const attention : {"none", "bahdanau", "luong", "dot", "hard", "{style: bahdanau, score: additive, read: hard}",
                                        "{style: luong, score: additive, align: sparsemax}"}) {
      for (std::string const more : {"", ", convolutions: 2, channels: 32", ", width: 192, embedding: 128, dropout: 0.1", ", cell: gru"}) {
        CAPTURE(attention);
        CAPTURE(more);
        test::check_estimate(experiment("kind: glyphs, rows: 3, columns: 5, most: 8, cell: 12",
                                        fmt::format("kind: captioner, context: 20, attention: {}{}", attention, more)));
      }
    }
    for (std::string const style : {"bahdanau", "luong"}) {
      CAPTURE(style);
      test::check_estimate(experiment("kind: glyphs", fmt::format("kind: captioner, doubly_stochastic: 1, attention: {}", style)));
    }
  }
}
