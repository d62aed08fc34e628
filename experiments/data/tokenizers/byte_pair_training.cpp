#include <algorithm>
#include <queue>
#include <string>
#include <tuple>
#include <unordered_map>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "experiments/data/tokenizers/tokenizers.hpp"

namespace heed {

namespace {

using Merge = BytePairs::Merge;

/// A pretoken of the text, and how often it stands there.
struct Counted {
  std::vector<std::int32_t> tokens;
  Index count = 0;
};

std::vector<Counted> count_pretokens(std::string_view text) {
  std::array<std::int32_t, 256> of_byte{};
  for (std::size_t i = 0; i < 256; ++i) of_byte[bytes_by_letter()[i]] = static_cast<std::int32_t>(i);
  std::unordered_map<std::string_view, std::size_t> numbers;
  std::vector<Counted> pretokens;
  while (!text.empty()) {
    auto const pretoken = text.substr(0, pretoken_end(text));
    text.remove_prefix(pretoken.size());
    auto const [found, added] = numbers.emplace(pretoken, pretokens.size());
    if (added) {
      auto& tokens = pretokens.emplace_back().tokens;
      for (auto const byte : pretoken) tokens.push_back(of_byte[static_cast<unsigned char>(byte)]);
    }
    ++pretokens[found->second].count;
  }
  return pretokens;
}

/// Pairs of neighbouring tokens, how often each stands in the text, and in which pretokens it may stand.
class TokenPairs {
 public:
  explicit TokenPairs(std::vector<Counted> pretokens) : pretokens_(std::move(pretokens)) {
    for (std::uint32_t word = 0; word < pretokens_.size(); ++word) {
      auto const& tokens = pretokens_[word].tokens;
      for (std::size_t i = 0; i + 1 < tokens.size(); ++i) add({tokens[i], tokens[i + 1]}, word);
    }
    queue_grown();
  }

  /// The pair that stands most often; nothing if none stands twice.
  std::optional<Merge> most_frequent() {
    while (!queue_.empty()) {
      auto const top = queue_.top();
      queue_.pop();
      auto const now = pairs_.at(top.pair.key()).count;
      if (now == top.count) return now > 1 ? std::optional(top.pair) : std::nullopt;
      if (now < top.count && now > 1) queue_.push({now, top.pair});  // else it is in the queue with what it has grown to
    }
    return std::nullopt;
  }

  /// Makes `token` of the pair, in every pretoken from left to right.
  void merge(Merge pair, std::int32_t token) {
    auto words = std::move(pairs_.at(pair.key()).words);
    std::ranges::sort(words);
    words.erase(std::unique(words.begin(), words.end()), words.end());
    for (auto const word : words) merge_in(word, pair, token);
    pairs_.at(pair.key()).count = 0;
    queue_grown();
  }

 private:
  struct Pair {
    Index count = 0;
    bool grown = false;
    std::vector<std::uint32_t> words;  ///< some more than once, or no longer
  };
  struct CandidatePair {
    Index count;
    Merge pair;
    bool operator<(CandidatePair const& other) const {
      return std::tie(count, other.pair.left, other.pair.right) < std::tie(other.count, pair.left, pair.right);
    }
  };

  void add(Merge pair, std::uint32_t word) {
    auto& each = pairs_[pair.key()];
    each.count += pretokens_[word].count;
    if (each.words.empty() || each.words.back() != word) each.words.push_back(word);
    if (!each.grown) grown_.push_back(pair);
    each.grown = true;
  }

  void merge_in(std::uint32_t word, Merge pair, std::int32_t token) {
    auto& tokens = pretokens_[word].tokens;
    auto const count = pretokens_[word].count;
    auto const stands = [&](std::size_t i) { return i + 1 < tokens.size() && tokens[i] == pair.left && tokens[i + 1] == pair.right; };
    std::size_t first = 0;
    while (first < tokens.size() && !stands(first)) ++first;
    if (first == tokens.size()) return;
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) pairs_.at(Merge{tokens[i], tokens[i + 1]}.key()).count -= count;
    std::size_t kept = first;
    for (std::size_t i = first; i < tokens.size(); ++kept) {
      bool const here = stands(i);
      tokens[kept] = here ? token : tokens[i];
      i += here ? 2 : 1;
    }
    tokens.resize(kept);
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) add({tokens[i], tokens[i + 1]}, word);
  }

  void queue_grown() {
    for (auto const pair : grown_) {
      auto& each = pairs_.at(pair.key());
      each.grown = false;
      queue_.push({each.count, pair});
    }
    grown_.clear();
  }

  std::vector<Counted> pretokens_;
  std::unordered_map<std::uint64_t, Pair> pairs_;
  std::priority_queue<CandidatePair> queue_;
  std::vector<Merge> grown_;
};

}  // namespace

std::shared_ptr<BytePairs const> train_byte_pairs(std::string_view text, Index size, std::function<void(Index)> const& progress) {
  if (size < min_byte_pairs)
    throw Error(fmt::format("a vocabulary of {} tokens: the 256 bytes and {} alone are {}", size, end_of_text, min_byte_pairs));
  TokenPairs pairs(count_pretokens(text));
  auto tokens = mapped(bytes_by_letter(), [](auto byte) { return std::string(1, static_cast<char>(byte)); });
  std::unordered_map<std::string, std::int32_t> ids;
  std::vector<std::string> merges;
  while (std::ssize(tokens) + 1 < size) {
    auto const pair = pairs.most_frequent();
    if (!pair) break;
    auto const &left = at(tokens, pair->left), &right = at(tokens, pair->right);
    merges.push_back(letters_of_bytes(left) + ' ' + letters_of_bytes(right));
    auto made = left + right;
    auto const [found, added] = ids.emplace(made, static_cast<std::int32_t>(tokens.size()));  // two pairs may make one token
    if (added) tokens.push_back(std::move(made));
    pairs.merge(*pair, found->second);
    if (progress) progress(std::ssize(tokens) + 1);
  }
  auto letters = mapped(tokens, letters_of_bytes);
  letters.emplace_back(end_of_text);
  return std::make_shared<BytePairs>(letters, merges);
}

}  // namespace heed
