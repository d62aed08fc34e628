#include "experiments/data/sequence_pair.hpp"

#include <algorithm>
#include <cmath>

namespace heed {

std::vector<std::int32_t> tokens_of(Tokenizer const& words, std::string_view line) {
  auto tokens = words.encode(line);
  tokens.erase(tokens.begin());  // <bos>
  return tokens;
}

std::string text_of(Tokenizer const& words, std::vector<std::int32_t> const& ids) {
  std::vector<Index> tokens;
  for (Index const id : ids) tokens.push_back(id + Tokenizer::marks);
  return words.decode(tokens);
}

std::pair<std::string, double> chance(std::vector<std::string> const& words) {
  return {"chance", std::log(static_cast<double>(words.size() + 1))};
}

Signature pair_signature(Index source, Index target, bool joint, Index longest_source, Index longest_target) {
  return {{.name = "source", .classes = source, .vocabulary = joint ? "" : "source", .longest = longest_source},
          {.name = "inputs", .classes = target, .longest = longest_target},
          {.name = "targets", .classes = target, .longest = longest_target}};
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

}  // namespace heed
