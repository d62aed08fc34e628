#include <fmt/ranges.h>

#include "autograd/error.hpp"
#include "experiments/data/text.hpp"
#include "experiments/data/tokenizers/tokenizers.hpp"
#include "nn/files/utf8.hpp"
#include "tests/json.hpp"
#include "tests/nn/choice.hpp"

using namespace heed;

namespace {

using Tokens = std::vector<std::int32_t>;
using Words = std::vector<std::string>;
using Merge = std::pair<std::string, std::string>;

Words pretokens(std::string_view text) {
  Words all;
  while (!text.empty()) {
    auto const end = pretoken_end(text);
    REQUIRE((end > 0 && end <= text.size()));
    all.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return all;
}

std::string decoded(BytePairs const& pairs, Tokens const& tokens) {
  std::string text;
  for (auto const token : tokens) text += pairs.bytes(token);
  return text;
}

/// Of a text its bytes, of bytes by letter all of them: a word each.
template <class Bytes>
Words single(Bytes const& bytes) {
  return mapped(bytes, [](auto byte) { return std::string(1, static_cast<char>(byte)); });
}

/// Training word for word: all pairs are counted anew for each merge. Tokens are written in bytes.
std::vector<Merge> plain_training(std::string const& text, std::size_t size) {
  Words tokens = single(bytes_by_letter());
  auto const number = [&](std::string const& token) { return std::ranges::find(tokens, token) - tokens.begin(); };
  std::vector<Words> words;
  for (auto const& pretoken : pretokens(text)) words.push_back(single(pretoken));
  std::vector<Merge> merges;
  while (tokens.size() + 1 < size) {
    std::map<Merge, int> counts;
    for (auto const& word : words)
      for (std::size_t i = 0; i + 1 < word.size(); ++i) ++counts[{word[i], word[i + 1]}];
    auto const order = [&](auto const& each) {
      return std::pair(-each.second, std::pair(number(each.first.first), number(each.first.second)));
    };
    auto const best = std::ranges::min_element(counts, {}, order);
    if (best == counts.end() || best->second < 2) break;
    auto const pair = best->first;
    merges.push_back(pair);
    if (std::ranges::find(tokens, pair.first + pair.second) == tokens.end()) tokens.push_back(pair.first + pair.second);
    for (auto& word : words)
      for (std::size_t i = 0; i + 1 < word.size(); ++i)
        if (word[i] == pair.first && word[i + 1] == pair.second) {
          word[i] += word[i + 1];
          word.erase(word.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        }
  }
  return merges;
}

/// Encoding as GPT-2's program does: of a word's pairs the one of the earliest merge, in all its places, until there is none.
Words plain_encoding(std::string const& text, std::map<Merge, std::size_t> const& ranks) {
  Words all;
  for (auto const& pretoken : pretokens(text)) {
    Words word = single(pretoken);
    while (true) {
      auto best = ranks.end();
      for (std::size_t i = 0; i + 1 < word.size(); ++i)
        if (auto const found = ranks.find({word[i], word[i + 1]});
            found != ranks.end() && (best == ranks.end() || found->second < best->second))
          best = found;
      if (best == ranks.end()) break;
      Words merged;
      for (std::size_t i = 0; i < word.size(); ++i) {
        bool const here = i + 1 < word.size() && word[i] == best->first.first && word[i + 1] == best->first.second;
        merged.push_back(here ? word[i] + word[i + 1] : word[i]);
        if (here) ++i;
      }
      word = merged;
    }
    all.insert(all.end(), word.begin(), word.end());
  }
  return all;
}

std::string random_text(std::mt19937_64& random, std::size_t size, std::string_view letters) {
  std::string text;
  for (std::size_t i = 0; i < size; ++i) text += letters[random() % letters.size()];
  return text;
}

std::string const small_text =
    "the cat and the other cat sat on the mat, and then the cats' mats were there; there's more: aaaa aaaaaaa banana bananas\n"
    "ein Wörterbuch, zwei Wörterbücher 字典 字典 2024 2025 20242025\n\n\tthe end of the end\n";

/// GPT-2's vocabulary; null, with a note, if it is not below HEED_DATA.
std::shared_ptr<BytePairs const> gpt2() {
  auto const* const data = test::data_folder("HEED_DATA");
  auto const folder = std::filesystem::path(data != nullptr ? data : "") / "gpt2-bpe";
  static auto const vocabulary = std::ifstream(folder / "vocab.bpe") ? read_byte_pairs(folder) : nullptr;
  if (!vocabulary) MESSAGE("gpt2-bpe not found below HEED_DATA: left out");
  return vocabulary;
}

std::string reference(std::string const& name) { return test::get(std::string(test::data_folder("HEED_DATA")) + "/gpt2-bpe/ref/" + name); }

Words split(std::string const& text, std::string const& separator) {
  Words parts;
  for (std::size_t begin = 0;;) {
    auto const end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == text.npos) return parts;
    begin = end + separator.size();
  }
}

Tokens numbers(std::string text) {
  std::ranges::replace(text, ',', ' ');
  std::istringstream stream(text);
  return {std::istream_iterator<std::int32_t>(stream), {}};
}

}  // namespace

TEST_SUITE("bpe") {
  TEST_CASE("bytes have GPT-2's letters") {
    CHECK(byte_letters()['a'] == "a");
    CHECK(byte_letters()[' '] == "Ġ");
    CHECK(byte_letters()['\n'] == "Ċ");
    CHECK(byte_letters()[0xAD] == "Ń");
    CHECK(byte_letters()[0xE9] == "é");
    CHECK(std::set(byte_letters().begin(), byte_letters().end()).size() == 256);
    CHECK(std::string_view(reinterpret_cast<char const*>(bytes_by_letter().data()), 3) == "!\"#");
  }

  TEST_CASE("text is split as by GPT-2's pattern, and bytes that are no UTF-8 as signs") {
    auto const splits = [](Words const& expected) {
      auto const text = fmt::format("{}", fmt::join(expected, ""));
      CAPTURE(text);
      CHECK(pretokens(text) == expected);
    };
    splits({"Hello", " world", "!"});
    splits({"I", "'m", " sure", " it", "'s", " they", "'ll", " ve", "'ve", "'", "x", "'", "S"});
    splits({" '", "s", "''", "s", "'t", "hat"});
    splits({"a", " ", " b", "   ", "\t", "c", "\n"});
    splits({"a", "\n", "\n", "b", "\t", "c", " \n ", " d", "\r\n"});
    splits({"x", "  "});
    splits({"abc", "123", "def", "4", " 56", " ?!...", " €"});
    splits({"Größe", " 字典", "²½Ⅷ", " Ωωe", "\u0301", "x"});
    splits({"a", "\u00A0", "b", "\u3000", "\u2003", "c"});  // white space that is no blank belongs to no word
    splits({"a", "\u180E", "b"});                           // which Unicode took from white space
    splits({"\xFF\xFE", " a", "\xF0\x9F", "b", " \x80", " ", " c", "\xC3"});
    CHECK(pretokens("").empty());
  }

  TEST_CASE("every reference encoding of GPT-2") {
    auto const pairs = gpt2();
    if (!pairs) return;
    std::size_t cases = 0;
    auto const encodes = [&](std::string const& text, Tokens const& expected) {
      CAPTURE(text);
      CHECK(pairs->encode(text) == expected);
      CHECK(decoded(*pairs, expected) == text);
      ++cases;
    };
    auto const inputs = split(reference("ggml-vocab-gpt-2.gguf.inp"), "\n__ggml_vocab_test__\n");
    auto const outputs = split(reference("ggml-vocab-gpt-2.gguf.out"), "\n");
    REQUIRE(inputs.size() <= outputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) encodes(inputs[i], numbers(outputs[i]));
    for (auto const& line : test::lines_of(reference("ggml-gpt-2.txt"))) {
      auto const arrow = line.rfind(" => ");
      if (arrow != line.npos) encodes(line.substr(0, arrow), numbers(line.substr(arrow + 4)));
    }
    auto const json = test::Json::parse(reference("cases.json"));
    for (auto const& each : json.at("cases")) encodes(each.at("text"), each.at("ids").get<Tokens>());
    CHECK(cases == 47 + 100 + 8);
    CHECK(pairs->vocabulary() == 50257);
    CHECK(pairs->find_special("<|endoftext|>") == 50256);
  }

  TEST_CASE("Tiny Shakespeare has 301,966 and 36,059 tokens of GPT-2") {
    if (!gpt2()) return;
    auto const choice = test::chosen(choice_of<DataKind>(), "text");
    auto& settings = dynamic_cast<TextSettings&>(*choice.settings);
    settings.name = "tinyshakespeare";
    settings.tokenizer = test::chosen(tokenizer_choice("bpe"), "bpe", {{"vocabulary", std::string("gpt2-bpe")}});
    auto const data = open_dataset(choice, {".", test::data_folder("HEED_DATA"), 1, true});
    CHECK(data->describe()["tokens"] == test::Json{{"training", 301'966}, {"validation", 36'059}});
    CHECK(data->facts().files.at("tokenizer.merges").file.ends_with("vocab.bpe"));
    auto const kept = restore_tokenizer(data->tokenizer());
    CHECK(kept->json() == data->tokenizer());
    CHECK(kept->encode("First Citizen:\n") == Tokens{5962, 22307, 25, 198});
    CHECK(*kept->mark(50256) == "<|endoftext|>");
  }

  TEST_CASE("a million random strings of bytes, and of characters, come back") {
    auto const trained = train_byte_pairs(small_text, 400);
    auto const given = gpt2();
    std::mt19937_64 random(1);
    std::size_t wrong = 0;
#ifdef HEED_SANITIZED
    constexpr int strings = 50'000;
#else
    constexpr int strings = 1'000'000;
#endif
    for (int i = 0; i < strings; ++i) {
      std::string text;
      auto const length = i % 1000 == 0 ? random() % 2000 : random() % 12;
      while (text.size() < length) {
        if (i % 3 == 0) text += static_cast<char>(random());
        if (i % 3 == 1) text += to_utf8(static_cast<char32_t>(random() % (random() % 4 == 0 ? 0x3000 : 0xD800)));
        if (i % 3 == 2) text += "ab e's'12\n\t.\xC3\xA9\xFF"[random() % 14];
      }
      auto const& pairs = given && i % 2 == 0 ? *given : *trained;
      wrong += decoded(pairs, pairs.encode(text)) != text;
    }
    CHECK(wrong == 0);
  }

  TEST_CASE("training makes the merges that counting anew for each of them makes, ties included") {
    std::mt19937_64 random(2);
    std::vector<std::string> texts{small_text, "", "a", "aaaaaaaaaaaaaaa", "ab ab ab ba ba ba"};
    for (int i = 0; i < 20; ++i)
      texts.push_back(random_text(random, 50 + 20 * static_cast<std::size_t>(i), i % 2 ? "aab " : "abcd  \n'\xC3\xA9"));
    for (auto const& text : texts) {
      CAPTURE(text);
      for (Index const size : {257, 260, 300, 400}) {
        auto const trained = train_byte_pairs(text, size);
        Words expected;
        for (auto const& [left, right] : plain_training(text, static_cast<std::size_t>(size)))
          expected.push_back(letters_of_bytes(left) + " " + letters_of_bytes(right));
        CHECK(trained->merges() == expected);
        CHECK(trained->vocabulary() <= size);
        CHECK(trained->find_special("<|endoftext|>") == trained->vocabulary() - 1);
      }
    }
    std::vector<Index> told;
    train_byte_pairs(small_text, 270, [&](Index tokens) { told.push_back(tokens); });
    CHECK(told.front() == 258);
    CHECK(told.back() == 270);
    CHECK_THROWS_WITH_AS(train_byte_pairs("a", 256), "a vocabulary of 256 tokens: the 256 bytes and <|endoftext|> alone are 257", Error);
  }

  TEST_CASE("encoding gives what GPT-2's program gives, merge by merge, with any vocabulary") {
    std::mt19937_64 random(3);
    for (int round = 0; round < 30; ++round) {
      // Merges of random tokens: one that is early may need what a later one makes another way.
      Words merges, tokens = single(bytes_by_letter());
      std::vector<std::int32_t> parts{'a' - '!', 'b' - '!', 'c' - '!'};
      std::map<Merge, std::size_t> ranks;
      for (int i = 0; i < 12; ++i) {
        BytePairs::Merge const pair{parts[random() % parts.size()], parts[random() % parts.size()]};
        auto const &left = heed::at(tokens, pair.left), &right = heed::at(tokens, pair.right);
        if (!ranks.emplace(std::pair(left, right), merges.size()).second) continue;
        auto const made = left + right;
        merges.push_back(letters_of_bytes(left) + ' ' + letters_of_bytes(right));
        if (std::ranges::find(tokens, made) != tokens.end()) continue;
        parts.push_back(static_cast<std::int32_t>(tokens.size()));
        tokens.push_back(made);
      }
      BytePairs const pairs(mapped(tokens, letters_of_bytes), merges);
      for (int i = 0; i < 50; ++i) {
        auto const text = random_text(random, random() % 60, "aaabbc ");
        CAPTURE(text);
        CHECK(mapped(pairs.encode(text), [&](auto token) { return pairs.bytes(token); }) == plain_encoding(text, ranks));
      }
    }
  }

  TEST_CASE("a long pretoken takes no time that grows with its square") {
    auto const trained = train_byte_pairs(std::string(1000, 'a'), 270);
    std::string const text(1 << 20, 'a');
    CHECK(decoded(*trained, trained->encode(text)) == text);
  }

  TEST_CASE("special tokens are text unless they are allowed") {
    Words tokens = mapped(single(bytes_by_letter()), letters_of_bytes);
    tokens.insert(tokens.end(), {"<s>", "<s><s>", "<|endoftext|>"});
    auto const pairs = std::make_shared<BytePairs>(tokens, Words{});
    CHECK(pairs->encode("<s>").size() == 3);
    CHECK(pairs->encode("<s><s><s>a<|endoftext|>", true) == Tokens{257, 256, 'a' - '!', 258});
    CHECK(decoded(*pairs, {257, 258}) == "<s><s><|endoftext|>");
    Tokenizer const& tokenizer = *pairs;
    CHECK(tokenizer.encode("<|endoftext|>").size() == 13);
    CHECK(*tokenizer.end() == 258);
    CHECK(!tokenizer.begin());
    CHECK(*tokenizer.mark(256) == "<s>");
    for (std::int32_t const none : {0, -1, 259}) CHECK(!tokenizer.mark(none));
    CHECK(tokenizer.decode({258}) == "<|endoftext|>");
    CHECK_THROWS_WITH_AS(tokenizer.decode({259}), "token 259 is outside the vocabulary of 259", Error);
  }
}
