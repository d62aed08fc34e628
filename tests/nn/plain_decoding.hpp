#pragma once

#include "autograd/ops/shape.hpp"
#include "autograd/ops/softmax.hpp"
#include "nn/decode.hpp"
#include "tests/nn/models.hpp"
#include "tests/nn/small_model.hpp"

/// What decoding with caches, beams and batches is held against: plain code that decodes one row with a whole pass for every token.
namespace heed::test {

using Tokens = std::vector<Index>;

inline constexpr Index vocabulary = 7, begin = 0, end = 1, max_length = 9;

inline Batch batch_of(Tensor const& source, Tensor const& lengths, Tensor const& inputs = {}) {
  return {{"source", source}, {"source_lengths", lengths}, {"inputs", inputs}};
}

inline Batch some_sources(Index rows) {
  Tokens lengths;
  for (Index row = 0; row < rows; ++row) lengths.push_back(1 + (row * 3) % 8);
  return batch_of(random_tokens({rows, 8}, vocabulary, "source"), Tensor::of(lengths, {rows}));
}

inline Batch rows_of(Batch const& batch, Tokens const& rows) { return batch.chosen(rows); }

/// The logarithms of the probabilities of each next token, by a whole pass over one row: before these tokens, after the first, ….
inline Tensor all_logs(Model const& model, Batch const& row, Tokens tokens, Pass const& pass) {
  tokens.insert(tokens.begin(), begin);
  auto const n = std::ssize(tokens);
  Batch told = row;
  told.set("inputs", Tensor::of(tokens, {1, n}));
  return log_softmax(model.logits(told, pass).viewed({n, model.vocabulary()}).to(DType::float64));
}

/// The logarithm of the probability of a target.
inline double score_of(Model const& model, Batch const& row, Decoded const& target, Pass const& pass) {
  Tensor const logs = all_logs(model, row, target.tokens, pass);
  auto const n = std::ssize(target.tokens);
  double sum = target.ended ? logs.at(n * model.vocabulary() + end) : 0;
  for (Index i = 0; i < n; ++i) sum += logs.at(i * model.vocabulary() + at(target.tokens, i));
  return sum;
}

inline double rank(Decoded const& hypothesis, double alpha) {
  double const length = static_cast<double>(hypothesis.tokens.size()) + (hypothesis.ended ? 1 : 0);
  return hypothesis.score / std::pow((5 + length) / 6, alpha);
}

inline void sort_by_rank(std::vector<Decoded>& hypotheses, double alpha) {
  std::ranges::stable_sort(hypotheses, [&](Decoded const& a, Decoded const& b) {
    return rank(a, alpha) != rank(b, alpha) ? rank(a, alpha) > rank(b, alpha) : a.tokens < b.tokens;
  });
}

/// Beam search of one row that never stops early.
inline std::vector<Decoded> plain_beam(Model const& model, Batch const& row, Index longest, BeamSettings const& settings, Index last = end,
                                       Pass const& pass = {}) {
  std::vector<Decoded> live(1), finished;
  for (Index step = 0; step < longest && !live.empty(); ++step) {
    std::vector<Decoded> all;
    for (Decoded const& each : live) {
      auto const logs = all_logs(model, row, each.tokens, pass).rows(step, 1).to_vector();
      for (Index token = 0; token < model.vocabulary(); ++token) {
        Decoded longer = each;
        longer.tokens.push_back(token);
        longer.score += at(logs, token);
        all.push_back(longer);
      }
    }
    std::ranges::sort(all, [](Decoded const& a, Decoded const& b) { return a.score != b.score ? a.score > b.score : a.tokens < b.tokens; });
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

inline void check_same(Decoded const& found, Decoded const& expected, double bound = 1e-12) {
  CHECK(found.tokens == expected.tokens);
  CHECK(found.ended == expected.ended);
  CHECK(std::abs(found.score - expected.score) <= bound * std::max(1.0, -expected.score));
}

inline void check_same(std::vector<Decoded> const& found, std::vector<Decoded> const& expected, double bound = 1e-12) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    auto const near = [&](Decoded const& other) { return std::abs(found[i].score - other.score) <= bound * std::max(1.0, -other.score); };
    // Of targets that tie, rounding says which comes first, and which of them the last places are for.
    auto const same = std::ranges::find_if(expected, [&](Decoded const& other) { return near(other) && other.tokens == found[i].tokens; });
    bool const tied = same == expected.end() && near(expected.back());
    if (!tied) check_same(found[i], same == expected.end() ? expected[i] : *same, bound);
    CHECK(near(expected[i]));
  }
}

inline double bound_of(DType dtype) { return dtype == DType::float64 ? 1e-12 : 1e-5; }

/// The next token's scores by the tokens read since the beginning, whatever the source; every token equal where nothing is told.
struct Told : SmallModel {
  Told() : SmallModel(100, 4) {}
  std::map<Tokens, std::vector<double>> table;
  mutable int reads = 0;

  struct Step : Decoding {
    Step(Told const& model, Index rows) : told(model), read(static_cast<std::size_t>(rows)) {}
    Tensor scores(Tensor const& tokens) override {
      ++told.reads;
      std::vector<double> all;
      for (std::size_t row = 0; row < read.size(); ++row) {
        read[row].push_back(tokens.data<std::int64_t>()[row]);
        auto const found = told.table.find({read[row].begin() + 1, read[row].end()});
        auto const one = found != told.table.end() ? found->second : std::vector<double>(static_cast<std::size_t>(told.vocabulary()));
        all.insert(all.end(), one.begin(), one.end());
      }
      return Tensor::of(all, {std::ssize(read), told.vocabulary()});
    }
    void restart() override { read.assign(read.size(), {}); }
    void keep(std::span<Index const> rows) override { read = take(read, rows); }
    Told const& told;
    std::vector<Tokens> read;
  };

  std::unique_ptr<Decoding> decode(Batch const& given, Pass const&) const override { return std::make_unique<Step>(*this, given.rows()); }
  Outcome run(Batch const&, Pass const&) const override { return {}; }
};

inline std::vector<double> logs(std::vector<double> probabilities) {
  std::ranges::transform(probabilities, probabilities.begin(), [](double p) { return std::log(p); });
  return probabilities;
}

}  // namespace heed::test
