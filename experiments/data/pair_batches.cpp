#include "experiments/data/pair_batches.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace heed {
namespace {

/// 0, 1, … count − 1 in random order.
template <class T>
std::vector<T> shuffled(std::size_t count, Stream const& draws) {
  std::vector<T> numbers(count);
  std::iota(numbers.begin(), numbers.end(), T{0});
  for (std::size_t i = count; i > 1; --i) std::swap(numbers[i - 1], numbers[draws.below(i, i)]);
  return numbers;
}

/// Length of the longer side, its mark included.
std::size_t longer_length(SequencePair const& pair) { return std::max(pair.source.size(), pair.target.size()) + 1; }

/// From the longest pairs on, so that what is left over for a small batch are short ones.
std::vector<std::size_t> pairs_of_batches(std::span<SequencePair const> pairs, std::size_t tokens) {
  auto lengths = mapped(pairs, longer_length);
  std::ranges::sort(lengths);
  std::vector<std::size_t> cuts;
  for (std::size_t end = lengths.size(); end > 0;) {
    cuts.push_back(end);
    end -= std::min(end, tokens / lengths[end - 1]);
  }
  cuts.push_back(0);
  std::ranges::reverse(cuts);
  return cuts;
}

}  // namespace

std::vector<std::int32_t> tokens_of(Tokenizer const& words, std::string_view line) {
  auto tokens = words.encode(line);
  tokens.erase(tokens.begin());  // <bos>
  return tokens;
}

std::string sentence_of(Tokenizer const& words, std::vector<std::int32_t> const& ids) {
  return words.decode(mapped(ids, [](Index id) { return id + Tokenizer::marks; }));
}

std::pair<std::string, double> chance(std::vector<std::string> const& words) {
  return {"chance", std::log(static_cast<double>(words.size() + 1))};
}

Signature pair_signature(Index source, Index target, bool joint, Index longest_source, Index longest_target, PairTokens most) {
  return {{.name = "source", .classes = source, .vocabulary = joint ? "" : "source", .longest = longest_source, .max_tokens = most.source},
          {.name = "inputs", .classes = target, .longest = longest_target, .max_tokens = most.target},
          {.name = "targets", .classes = target, .longest = longest_target, .max_tokens = most.target}};
}

Batch batch_of(std::span<SequencePair const* const> pairs) {
  std::size_t source = 0, target = 0;
  for (auto const* const pair : pairs) {
    source = std::max(source, pair->source.size() + 1);
    target = std::max(target, pair->target.size() + 1);
  }
  auto const rows = std::ssize(pairs);
  auto const filled = [rows](std::size_t width, double value) {
    return Tensor::full({rows, static_cast<Index>(width)}, value, DType::int64);
  };
  Batch result{{"source", filled(source, Tokenizer::pad)},
               {"source_lengths", Tensor({rows}, DType::int64)},
               {"inputs", filled(target, Tokenizer::pad)},
               {"lengths", Tensor({rows}, DType::int64)},
               {"targets", filled(target, -1)}};
  auto const values = [&](char const* part) { return result[part].mutable_data<std::int64_t>(); };
  for (std::size_t row = 0; row < pairs.size(); ++row) {
    auto const& [from, to] = *pairs[row];
    auto const read = values("source").subspan(row * source), given = values("inputs").subspan(row * target),
               wanted = values("targets").subspan(row * target);
    *std::ranges::copy(from, read.begin()).out = Tokenizer::eos;
    given.front() = Tokenizer::bos;
    std::ranges::copy(to, given.begin() + 1);
    *std::ranges::copy(to, wanted.begin()).out = Tokenizer::eos;
    values("source_lengths")[row] = std::ssize(from) + 1;
    values("lengths")[row] = std::ssize(to) + 1;
  }
  return result;
}

PairBatches::PairBatches(std::span<SequencePair const> pairs, Index pool, Index tokens, std::uint64_t seed)
    : pairs_(pairs), pool_(static_cast<std::size_t>(pool)), seed_(seed) {
  if (tokens > 0) cuts_ = pairs_of_batches(pairs_, static_cast<std::size_t>(tokens));
}

Index PairBatches::per_epoch(Index batch) const { return cuts_.empty() ? std::ssize(pairs_) / batch : std::ssize(cuts_) - 1; }

PairBatches::Epoch PairBatches::by_rows(Stream const& draws, std::size_t rows) const {
  auto drawn = shuffled<std::int32_t>(pairs_.size(), draws.child("pairs"));
  auto const batches = drawn.size() / rows;
  Epoch epoch;
  for (std::size_t first = 0; first < batches; first += pool_) {
    auto const in_pool = std::min(pool_, batches - first);
    auto const part = std::span(drawn).subspan(first * rows, in_pool * rows);
    if (pool_ > 1)
      std::ranges::stable_sort(part, {}, [&](std::int32_t i) {
        auto const& [source, target] = at(pairs_, i);
        return std::pair(target.size(), source.size());
      });
    for (auto const number : shuffled<std::size_t>(in_pool, draws.child("batches").child(first))) {
      auto const batch = part.subspan(number * rows, rows);
      epoch.emplace_back(batch.begin(), batch.end());
    }
  }
  return epoch;
}

PairBatches::Epoch PairBatches::by_tokens(Stream const& draws) const {
  auto drawn = shuffled<std::int32_t>(pairs_.size(), draws.child("pairs"));
  std::ranges::stable_sort(drawn, {}, [&](std::int32_t i) { return longer_length(at(pairs_, i)); });
  Epoch epoch;
  for (auto const number : shuffled<std::size_t>(cuts_.size() - 1, draws.child("batches"))) {
    auto const batch = std::span(drawn).subspan(cuts_[number], cuts_[number + 1] - cuts_[number]);
    epoch.emplace_back(batch.begin(), batch.end());
  }
  return epoch;
}

std::vector<SequencePair const*> PairBatches::rows(Index index, Index batch) const {
  auto const batches = per_epoch(batch), number = index / batches;
  std::lock_guard const lock(drawing_);
  if (auto const wanted = std::pair(number, cuts_.empty() ? batch : 0); drawn_ != wanted) {
    auto const draws = Stream(seed_, "data").child(static_cast<std::uint64_t>(number));
    epoch_ = cuts_.empty() ? by_rows(draws, static_cast<std::size_t>(batch)) : by_tokens(draws);
    drawn_ = wanted;
  }
  return mapped(at(epoch_, index % batches), [&](auto i) -> SequencePair const* { return &at(pairs_, i); });
}

PairTokens PairBatches::max_tokens() const {
  std::map<std::size_t, PairTokens> longest;  // of the pairs whose longer side has so many tokens
  for (auto const& pair : pairs_) {
    auto& largest = longest[longer_length(pair)];
    largest.source = std::max<Index>(largest.source, std::ssize(pair.source) + 1);
    largest.target = std::max<Index>(largest.target, std::ssize(pair.target) + 1);
  }
  auto lengths = mapped(pairs_, longer_length);
  std::ranges::sort(lengths);
  PairTokens largest;
  for (std::size_t batch = 0; batch + 1 < cuts_.size(); ++batch) {
    auto const rows = static_cast<Index>(cuts_[batch + 1] - cuts_[batch]);
    auto const end = longest.upper_bound(lengths[cuts_[batch + 1] - 1]);
    for (auto of = longest.find(lengths[cuts_[batch]]); of != end; ++of) {
      largest.source = std::max(largest.source, rows * of->second.source);
      largest.target = std::max(largest.target, rows * of->second.target);
    }
  }
  return largest;
}

}  // namespace heed
