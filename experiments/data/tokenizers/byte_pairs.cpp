#include <algorithm>
#include <limits>
#include <queue>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <utf8proc.h>

#include "autograd/error.hpp"
#include "experiments/data/open.hpp"
#include "experiments/data/tokenizers/tokenizers.hpp"
#include "nn/files/json.hpp"
#include "nn/files/utf8.hpp"

namespace heed {

namespace {

enum class Class : std::uint8_t { letter, number, space, other };

Class class_of(char32_t c) {
  if (is_white_space(c)) return Class::space;
  auto const category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  if (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO) return Class::letter;
  if (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO) return Class::number;
  return Class::other;
}

/// The class of the character that begins at byte i, which moves behind it.
Class next_class(std::string_view text, std::size_t& i) {
  static auto const ascii_classes = [] {
    std::array<Class, 128> classes{};
    for (char32_t c = 0; c < 128; ++c) classes[c] = class_of(c);
    return classes;
  }();
  if (auto const byte = static_cast<unsigned char>(text[i]); byte < 0x80) {
    ++i;
    return ascii_classes[byte];
  }
  auto const character = decode_utf8(text, i);
  return character ? class_of(*character) : Class::other;
}

/// Where the run of characters of one class ends that begins at `begin`.
std::size_t run_end(std::string_view text, std::size_t begin, Class of) {
  for (auto i = begin; i < text.size(); begin = i)
    if (next_class(text, i) != of) return begin;
  return text.size();
}

/// Whether a byte is a printable character of Latin-1, other than a blank.
bool stands_for_itself(unsigned byte) { return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE; }

bool looks_special(std::string_view token) {
  return token.size() > 2 && ((token.front() == '<' && token.back() == '>') || (token.front() == '[' && token.back() == ']'));
}

constexpr std::size_t max_known = 1 << 17;  // pretokens

}  // namespace

std::size_t pretoken_end(std::string_view text) {
  if (text.front() == '\'')
    for (std::string_view const ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
      if (text.starts_with(ending)) return ending.size();
  std::size_t i = 0;
  auto const first = next_class(text, i);
  if (first != Class::space) return run_end(text, i, first);
  if (i == text.size()) return i;
  if (auto after = i; text.front() == ' ')
    if (auto const second = next_class(text, after); second != Class::space) return run_end(text, after, second);
  // White space up to the end of the text, or up to its last character, which may belong to what follows.
  for (std::size_t last = 0; i < text.size();) {
    auto const begin = i;
    if (next_class(text, i) != Class::space) return last > 0 ? last : begin;
    last = begin;
  }
  return text.size();
}

std::array<unsigned char, 256> const& bytes_by_letter() {
  static auto const bytes = [] {
    std::array<unsigned char, 256> all{};
    std::size_t n = 0;
    for (bool const itself : {true, false})
      for (unsigned byte = 0; byte < 256; ++byte)
        if (stands_for_itself(byte) == itself) all[n++] = static_cast<unsigned char>(byte);
    return all;
  }();
  return bytes;
}

std::array<std::string, 256> const& byte_letters() {
  static auto const letters = [] {
    std::array<std::string, 256> all;
    char32_t other = 0x100;
    for (auto const byte : bytes_by_letter()) all[byte] = to_utf8(stands_for_itself(byte) ? byte : other++);
    return all;
  }();
  return letters;
}

std::string letters_of_bytes(std::string_view bytes) {
  std::string letters;
  for (auto const byte : bytes) letters += byte_letters()[static_cast<unsigned char>(byte)];
  return letters;
}

BytePairs::BytePairs(std::vector<std::string> const& tokens, std::vector<std::string> const& merges, std::string const& name_of_tokens,
                     LineName const& location) {
  std::unordered_map<std::string_view, std::int32_t> ids;
  for (auto const& token : tokens) {
    if (token.empty()) throw Error(fmt::format("{}: token {} is empty", name_of_tokens, ids.size()));
    if (!ids.emplace(token, static_cast<std::int32_t>(ids.size())).second)
      throw Error(fmt::format("{}: token '{}' stands twice", name_of_tokens, token));
  }
  std::vector<bool> is_made(tokens.size());
  tokens_.resize(tokens.size());
  for (auto const byte : bytes_by_letter()) {
    auto const found = ids.find(byte_letters()[byte]);
    if (found == ids.end())
      throw Error(fmt::format("{}: there is no token for the byte 0x{:02X}, '{}'", name_of_tokens, byte, byte_letters()[byte]));
    of_byte_[byte] = found->second;
    heed::at(is_made, found->second) = true;
    heed::at(tokens_, found->second) = static_cast<char>(byte);
  }
  for (std::size_t i = 0; i < merges.size(); ++i) {
    std::string_view const merge = merges[i];
    auto const blank = merge.find(' ');
    if (blank == merge.npos || blank == 0 || blank + 1 == merge.size() || merge.find(' ', blank + 1) != merge.npos)
      throw Error(fmt::format("{}: '{}' is not two tokens with a blank between", location(i), valid_utf8(merge)));
    auto const id = [&](std::string const& token, std::string_view what) {
      auto const found = ids.find(token);
      if (found == ids.end())
        throw Error(fmt::format("{}: '{}'{} is no token of {}", location(i), valid_utf8(token), what, name_of_tokens));
      return found->second;
    };
    std::string const left(merge.substr(0, blank)), right(merge.substr(blank + 1));
    Merge const pair{id(left, ""), id(right, "")};
    auto const token = id(left + right, fmt::format(", which {} and {} make,", left, right));
    for (auto const part : {pair.left, pair.right})
      if (!heed::at(is_made, part)) throw Error(fmt::format("{}: '{}' is made by no merge before", location(i), heed::at(tokens, part)));
    if (!made_.emplace(pair.key(), MergedToken{static_cast<std::int32_t>(i), token}).second)
      throw Error(fmt::format("{}: '{}' stands twice", location(i), merge));
    heed::at(is_made, token) = true;
    heed::at(tokens_, token) = bytes(pair.left) + bytes(pair.right);
    merges_.push_back(pair);
  }
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (is_made[i]) continue;
    if (!looks_special(tokens[i]))
      throw Error(fmt::format("{}: token '{}' is made by no merge; do its merges belong to it, and are they all there?", name_of_tokens,
                              valid_utf8(tokens[i])));
    special_.push_back(static_cast<std::int32_t>(i));
    tokens_[i] = tokens[i];
  }
}

std::optional<Index> BytePairs::end() const {
  auto const own = find_special(end_of_text);
  return own ? own : find_special("</s>");
}

std::optional<std::string> BytePairs::mark(Index token) const {
  return std::ranges::binary_search(special_, token) ? std::optional(bytes(token)) : std::nullopt;
}

std::string BytePairs::json() const { return json_text(nlohmann::json{{"kind", "bpe"}, {"merges", merges()}, {"tokens", tokens()}}); }

std::string BytePairs::text_of(std::vector<Index> const& tokens) const {
  std::string text;
  for (auto const token : tokens) text += bytes(token);
  return text;
}

std::optional<std::int32_t> BytePairs::find_special(std::string_view text) const {
  auto const found = std::ranges::find(special_, text, [&](std::int32_t token) -> std::string_view { return bytes(token); });
  return found == special_.end() ? std::nullopt : std::optional(*found);
}

std::vector<std::string> BytePairs::tokens() const {
  std::vector<std::string> letters;
  for (auto const& token : tokens_) letters.push_back(mark(std::ssize(letters)).value_or(letters_of_bytes(token)));
  return letters;
}

std::vector<std::string> BytePairs::merges() const {
  auto const line_of = [&](Merge const& of) { return letters_of_bytes(bytes(of.left)) + ' ' + letters_of_bytes(bytes(of.right)); };
  return mapped(merges_, line_of);
}

std::vector<std::int32_t> BytePairs::encode(std::string_view text, bool special) const {
  std::vector<std::int32_t> tokens;
  tokens.reserve(text.size() / 3);
  std::scoped_lock const lock(using_known_);
  while (special) {
    std::size_t at = text.npos;
    std::int32_t found = 0;
    for (auto const token : special_) {
      auto const begin = text.find(bytes(token));
      if (begin < at || (begin != text.npos && begin == at && bytes(token).size() > bytes(found).size())) at = begin, found = token;
    }
    if (at == text.npos) break;
    encode_text(text.substr(0, at), tokens);
    tokens.push_back(found);
    text.remove_prefix(at + bytes(found).size());
  }
  encode_text(text, tokens);
  return tokens;
}

void BytePairs::encode_text(std::string_view text, std::vector<std::int32_t>& out) const {
  while (!text.empty()) {
    auto const pretoken = text.substr(0, pretoken_end(text));
    text.remove_prefix(pretoken.size());
    if (auto const known = known_.find(pretoken); known != known_.end()) {
      out.insert(out.end(), known->second.begin(), known->second.end());
      continue;
    }
    auto const tokens = encode_pretoken(pretoken);
    out.insert(out.end(), tokens.begin(), tokens.end());
    constexpr std::size_t longest_known = 64;
    if (pretoken.size() > longest_known) continue;
    if (known_.size() == max_known) known_.clear();  // other text than before, perhaps
    known_.emplace(pretoken, tokens);
  }
}

// The symbols are a linked list. A queue holds the pairs that a merge applies to, the earliest merge and the leftmost pair first; a pair
// whose symbols have changed meanwhile is passed over. What a merge makes joins the queue after all pairs of that merge are done.
std::vector<std::int32_t> BytePairs::encode_pretoken(std::string_view pretoken) const {
  constexpr auto none = std::numeric_limits<std::size_t>::max();
  struct MergeSymbol {
    std::int32_t token;
    std::size_t before, after;
  };
  struct CandidateMerge {
    MergedToken made;
    std::size_t position;
    Merge pair;
    bool operator>(CandidateMerge const& other) const { return std::tie(made.rank, position) > std::tie(other.made.rank, other.position); }
  };
  std::size_t const n = pretoken.size();
  std::vector<MergeSymbol> symbols(n);
  for (std::size_t i = 0; i < n; ++i)
    symbols[i] = {of_byte_[static_cast<unsigned char>(pretoken[i])], i == 0 ? none : i - 1, i + 1 == n ? none : i + 1};

  std::vector<CandidateMerge> storage;
  storage.reserve(n);
  std::priority_queue<CandidateMerge, std::vector<CandidateMerge>, std::greater<>> queue(std::greater<>(), std::move(storage));
  auto const candidate = [&](std::size_t position) -> std::optional<CandidateMerge> {
    if (position == none || symbols[position].after == none) return std::nullopt;
    Merge const pair{symbols[position].token, symbols[symbols[position].after].token};
    auto const found = made_.find(pair.key());
    return found == made_.end() ? std::nullopt : std::optional(CandidateMerge{found->second, position, pair});
  };
  for (std::size_t i = 0; i + 1 < n; ++i)
    if (auto const pair = candidate(i)) queue.push(*pair);

  std::vector<std::size_t> merged;
  while (!queue.empty()) {
    auto const rank = queue.top().made.rank;
    merged.clear();
    for (; !queue.empty() && queue.top().made.rank == rank; queue.pop()) {
      auto const& [made, position, pair] = queue.top();
      auto& left = symbols[position];
      if (left.token != pair.left || left.after == none || symbols[left.after].token != pair.right) continue;
      symbols[left.after].token = -1;
      left.token = made.token;
      left.after = symbols[left.after].after;
      if (left.after != none) symbols[left.after].before = position;
      merged.push_back(position);
    }
    for (auto const position : merged) {
      if (auto const pair = candidate(symbols[position].before)) queue.push(*pair);
      if (auto const pair = candidate(position)) queue.push(*pair);
    }
  }
  std::vector<std::int32_t> tokens;
  for (std::size_t i = 0; i != none && n > 0; i = symbols[i].after) tokens.push_back(symbols[i].token);
  return tokens;
}

namespace {

struct BytePairSettings : Settings {
  std::optional<std::string> vocabulary;
  std::optional<Index> size;

  std::vector<Field> fields() override {
    return {
        field(&vocabulary, "vocabulary",
              "folder with vocab.json and merges.txt, encoder.json and vocab.bpe, or tokenizer.json, relative to the configuration, "
              "then to the data folder"),
        field(&size, "size",
              "instead of vocabulary: size of one that is trained on the training text, including the 256 bytes and the end-of-text token")
            .in(min_byte_pairs, 1e7)};
  }
  std::optional<std::string> contradiction() override {
    if (vocabulary && size) return "size: give either vocabulary or size, not both";
    if (!vocabulary && !size) return "vocabulary: give the folder of a vocabulary, or the size of one to be trained";
    return std::nullopt;
  }
};

std::shared_ptr<Tokenizer const> make(Settings const& settings, TokenizerKind::Source const& source) {
  auto const& [vocabulary, size] = dynamic_cast<BytePairSettings const&>(settings);
  if (!source.context.tokenizer.empty()) return restore_tokenizer(source.context.tokenizer);
  if (size) return train_byte_pairs(source.training, *size);
  return read_byte_pairs(locate(vocabulary.value(), source.context), source.context.tokenizer_files);
}

std::shared_ptr<Tokenizer const> restore(nlohmann::json const& saved) {
  return std::make_shared<BytePairs>(saved.at("tokens").get<std::vector<std::string>>(),
                                     saved.at("merges").get<std::vector<std::string>>());
}

Declared<TokenizerKind> const bpe_tokenizer{
    {.name = "bpe",
     .help = "GPT-2's byte-pair encoding, with a given vocabulary or one trained on the training text",
     .settings = [] { return std::make_shared<BytePairSettings>(); },
     .make = make,
     .restore = restore}};

}  // namespace

}  // namespace heed
