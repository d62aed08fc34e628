#include "nn/decode.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <tuple>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "autograd/graph.hpp"
#include "autograd/ops/index.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/ops/shape.hpp"
#include "autograd/parallel.hpp"
#include "nn/batch.hpp"

namespace heed {

StepwiseDecoding::StepwiseDecoding(Pass const& pass) {
  pass_.decoding.choosing = pass.decoding.choosing;
  pass_.decoding.sequences = pass.decoding.sequences;
}

void StepwiseDecoding::begin(Index rows) {
  auto& numbers = pass_.decoding.sequences;
  if (numbers.empty())
    for (Index row = 0; row < rows; ++row) numbers.push_back(static_cast<std::uint64_t>(row));
  if (rows > std::ssize(numbers)) static_cast<void>(pass_.sequence(rows - 1));  // says that there are too few
  for (Index row = 0; row < rows; ++row) origins_.push_back(row);
}

Tensor StepwiseDecoding::scores(Tensor const& tokens) {
  NoGrad const quiet;
  RoundedWeights::Use const use(weights_);
  if (origins_.empty()) begin(tokens.size(0));
  return read(tokens.rank() == 2 ? tokens : tokens.viewed({tokens.size(0), 1}));
}

void StepwiseDecoding::keep(std::span<Index const> rows) {
  NoGrad const quiet;
  keep_read(rows);
  auto const before = std::exchange(origins_, take(origins_, rows));
  if (origins_ == before) return;
  pass_.decoding.sequences = take(pass_.decoding.sequences, rows);
  keep_given(rows);
}

Tensor last_position(Tensor const& x) {
  Index const rows = x.size(0), length = x.size(1), width = x.size(2);
  return length == 1 ? x.viewed({rows, width}) : reshape(slice(x, 1, length - 1, length), {rows, width});
}

LengthLimit longest_targets(Batch const& given, Model const& model) {
  constexpr Index more = 50;
  if (!given.has("source")) return model.context();
  std::vector<Index> limits(static_cast<std::size_t>(given.rows()), given["source"].size(1));
  if (given.has("source_lengths")) std::ranges::copy(given["source_lengths"].data<std::int64_t>(), limits.begin());
  for (auto& tokens : limits) tokens = std::min(tokens + more, model.context());
  return limits;
}

namespace {

/// A Decoding and the batch row that each of its rows (slots) continues: a batch row has a slot for each hypothesis, none once it is done.
class DecodedRows {
 public:
  DecodedRows(Model const& model, Batch const& given, LengthLimit const& limits, Pass const& pass) : decoding_(model.decode(given, pass)) {
    if (!decoding_ || given.parts().empty()) throw Error("decode: a model of this kind does not map a source to a target");
    auto const count = static_cast<std::size_t>(given.rows());
    if (!limits.fits(count)) throw Error(fmt::format("decode: length limits are not given for each of the {} sequences", count));
    for (std::size_t row = 0; row < count; ++row) rows_.push_back(row);
  }

  std::size_t size() const { return rows_.size(); }
  /// The batch row of a slot.
  std::size_t row(std::size_t slot) const { return rows_[slot]; }

  /// Keeps these slots only, in this order, and reads a token in each. Returns the next tokens' scores [R, V] and their log Σ exp [R].
  std::pair<Tensor, Tensor> read(std::vector<Index> const& slots, std::vector<Index> const& tokens) {
    std::vector<Index> all(rows_.size());
    std::iota(all.begin(), all.end(), 0);
    if (slots != all) {
      decoding_->keep(slots);
      rows_ = take(rows_, slots);
    }
    Tensor scores = decoding_->scores(Tensor::of(tokens, {std::ssize(tokens)}));
    Tensor sums = logsumexp(scores, {-1});
    for (std::size_t slot = 0; slot < rows_.size(); ++slot) {
      double const sum = sums.at(static_cast<Index>(slot));
      if (!std::isfinite(sum))
        throw NonFinite(fmt::format("decode: sequence {}: log Σ exp(score) of the next token is {}", rows_[slot], sum));
    }
    return {std::move(scores), std::move(sums)};
  }

 private:
  std::unique_ptr<Decoding> decoding_;
  std::vector<std::size_t> rows_;
};

/// A token, and the logarithm of its probability.
struct ScoredToken {
  Index token;
  double score;
};

/// The `count` most probable ones, the most probable first, of equals the lower token; none that is impossible.
template <class T>
std::vector<ScoredToken> most_probable(std::span<T const> scores, double log_sum, std::size_t count) {
  std::vector<ScoredToken> best;
  T min_score = -std::numeric_limits<T>::infinity();  // what a score must exceed
  for (std::size_t token = 0; token < scores.size(); ++token) {
    if (!(scores[token] > min_score)) continue;
    if (best.size() == count) best.pop_back();
    double const score = static_cast<double>(scores[token]);
    auto const position = std::ranges::upper_bound(best, score, std::greater(), &ScoredToken::score);
    best.insert(position, {static_cast<Index>(token), score});
    if (best.size() == count) min_score = static_cast<T>(best.back().score);
  }
  for (ScoredToken& each : best) each.score -= log_sum;
  return best;
}

/// most_probable() of every row of scores [R, V].
std::vector<std::vector<ScoredToken>> most_probable(Tensor const& scores, Tensor const& log_sums, std::size_t count) {
  std::vector<std::vector<ScoredToken>> result(static_cast<std::size_t>(scores.size(0)));
  auto const vocabulary = static_cast<std::size_t>(scores.size(1));
  auto const of_rows = [&](auto all) {
    parallel_for(scores.size(0), static_cast<double>(vocabulary), [&](Index first, Index last) {
      for (Index i = first; i < last; ++i) {
        auto const row = static_cast<std::size_t>(i);
        result[row] = most_probable(all.subspan(row * vocabulary, vocabulary), log_sums.at(i), count);
      }
    });
  };
  if (scores.dtype() == DType::float32) of_rows(scores.data<float>());
  if (scores.dtype() == DType::float64) of_rows(scores.data<double>());
  return result;
}

/// A row's hypotheses.
class Beam {
 public:
  /// `slot`: where it is read.
  Beam(BeamSettings const& settings, Index end, Index max_length, Index slot)
      : width_(static_cast<std::size_t>(settings.width)), alpha_(settings.length_penalty), end_(end), max_length_(max_length) {
    if (max_length > 0)
      live_.push_back({{}, slot});
    else
      finished_.emplace_back();
  }

  struct Live {
    Decoded so_far;
    Index slot;  ///< it goes on from
  };
  /// Those that go on, the most probable first; none when the row is done.
  std::vector<Live> const& live() const { return live_; }
  std::vector<Decoded> finished() && { return std::move(finished_); }

  /// Goes on with the continuations of each live hypothesis, which were read in slot `first` and those after it.
  void extend(std::span<std::vector<ScoredToken> const> continuations, Index first) {
    std::vector<Live> next;
    for (BeamCandidate const& chosen : best(continuations)) {
      Decoded hypothesis = live_[chosen.from].so_far;
      hypothesis.score = chosen.score;
      if (chosen.token == end_) {
        hypothesis.ended = true;
        finish(std::move(hypothesis));
      } else {
        hypothesis.tokens.push_back(chosen.token);
        next.push_back({std::move(hypothesis), first + static_cast<Index>(chosen.from)});
      }
    }
    live_ = std::move(next);
    if (!live_.empty() && std::ssize(live_.front().so_far.tokens) == max_length_) {
      for (Live& each : live_) finish(std::move(each.so_far));
      live_.clear();
    }
    if (done()) live_.clear();
  }

 private:
  struct BeamCandidate {
    std::size_t from;  // of the live hypotheses
    Index token;
    double score;
  };

  std::vector<BeamCandidate> best(std::span<std::vector<ScoredToken> const> continuations) const {
    std::vector<BeamCandidate> all;
    for (std::size_t from = 0; from < live_.size(); ++from)
      for (ScoredToken const& each : continuations[from]) all.push_back({from, each.token, live_[from].so_far.score + each.score});
    auto const better = [&](BeamCandidate const& a, BeamCandidate const& b) {
      if (a.score != b.score) return a.score > b.score;
      return std::tie(live_[a.from].so_far.tokens, a.token) < std::tie(live_[b.from].so_far.tokens, b.token);
    };
    auto const kept = std::min(width_, all.size());
    std::ranges::partial_sort(all, all.begin() + static_cast<std::ptrdiff_t>(kept), better);
    all.resize(kept);
    return all;
  }

  double rank(Decoded const& hypothesis) const {
    return hypothesis.score / heed::length_penalty(std::ssize(hypothesis.tokens) + (hypothesis.ended ? 1 : 0), alpha_);
  }

  void finish(Decoded hypothesis) {
    auto const better = [&](Decoded const& a, Decoded const& b) {
      double const of_a = rank(a), of_b = rank(b);
      return of_a != of_b ? of_a > of_b : a.tokens < b.tokens;
    };
    finished_.insert(std::ranges::upper_bound(finished_, hypothesis, better), std::move(hypothesis));
    if (finished_.size() > width_) finished_.pop_back();
  }

  /// Whether no live hypothesis can become one of the `width` best: its probability can only fall, and its length is limited.
  bool done() const {
    return live_.empty() ||
           (finished_.size() == width_ && rank(finished_.back()) > live_.front().so_far.score / heed::length_penalty(max_length_, alpha_));
  }

  std::size_t width_;
  double alpha_;
  Index end_, max_length_;
  std::vector<Live> live_;
  std::vector<Decoded> finished_;  // the best first
};

}  // namespace

double length_penalty(Index length, double alpha) { return std::pow((5 + static_cast<double>(length)) / 6, alpha); }

std::vector<std::vector<Decoded>> beam(Model const& model, Batch const& given, Index begin, Index end, LengthLimit const& limits,
                                       BeamSettings const& settings, Pass const& pass) {
  if (settings.width < 1) throw Error(fmt::format("beam: the width {} is less than 1", settings.width));
  if (!(settings.length_penalty >= 0) || std::isinf(settings.length_penalty))
    throw Error(fmt::format("beam: the length penalty {} is not a finite number ≥ 0", settings.length_penalty));
  NoGrad const quiet;
  DecodedRows rows(model, given, limits, pass);
  std::vector<Beam> beams;
  for (std::size_t row = 0; row < rows.size(); ++row) beams.emplace_back(settings, end, limits[row], static_cast<Index>(row));
  for (;;) {
    std::vector<Index> slots, last;
    for (Beam const& each : beams) {
      for (auto const& [so_far, slot] : each.live()) {
        slots.push_back(slot);
        last.push_back(so_far.tokens.empty() ? begin : so_far.tokens.back());
      }
    }
    if (slots.empty()) break;
    auto const [scores, log_sums] = rows.read(slots, last);
    auto const continuations = most_probable(scores, log_sums, static_cast<std::size_t>(settings.width));
    std::size_t first = 0;
    for (Beam& each : beams) {
      std::size_t const count = each.live().size();
      each.extend(std::span(continuations).subspan(first, count), static_cast<Index>(first));
      first += count;
    }
  }
  std::vector<std::vector<Decoded>> result;
  for (Beam& each : beams) result.push_back(std::move(each).finished());
  return result;
}

std::vector<Decoded> greedy(Model const& model, Batch const& given, Index begin, Index end, LengthLimit const& limits, Pass const& pass) {
  std::vector<Decoded> result;
  for (auto& of_row : beam(model, given, begin, end, limits, {.width = 1, .length_penalty = 0}, pass))
    result.push_back(std::move(of_row.front()));
  return result;
}

std::vector<Decoded> sample(Model const& model, Batch const& given, Index begin, Index end, LengthLimit const& limits,
                            SamplingSettings const& settings, Stream const& stream, Pass const& pass) {
  NoGrad const quiet;
  DecodedRows rows(model, given, limits, pass);
  std::vector<Decoded> result(rows.size());
  std::vector<Index> slots, last;
  auto const go_on = [&](std::size_t row, std::size_t slot, Index token) {
    if (std::ssize(result[row].tokens) >= limits[row]) return;
    slots.push_back(static_cast<Index>(slot));
    last.push_back(token);
  };
  for (std::size_t row = 0; row < rows.size(); ++row) go_on(row, row, begin);
  for (std::uint64_t step = 0; !slots.empty(); ++step) {
    auto const [scores, log_sums] = rows.read(slots, last);
    std::vector<Index> drawn(rows.size());
    std::vector<double> probabilities(rows.size());
    parallel_for(scores.size(0), 50 * static_cast<double>(scores.size(1)), [&, &all = scores, &sums = log_sums](Index from, Index to) {
      for (Index i = from; i < to; ++i) {
        auto const slot = static_cast<std::size_t>(i);
        auto const of_row = all.rows(i, 1).to_vector();
        double const u = stream.child(pass.sequence(static_cast<Index>(rows.row(slot)))).uniform(step);
        drawn[slot] = draw_token(candidates(of_row, settings), u);
        probabilities[slot] = at(of_row, drawn[slot]) - sums.at(i);
      }
    });
    slots.clear();
    last.clear();
    for (std::size_t slot = 0; slot < rows.size(); ++slot) {
      Decoded& decoded = result[rows.row(slot)];
      decoded.score += probabilities[slot];
      decoded.ended = drawn[slot] == end;
      if (decoded.ended) continue;
      decoded.tokens.push_back(drawn[slot]);
      go_on(rows.row(slot), slot, drawn[slot]);
    }
  }
  return result;
}

}  // namespace heed
