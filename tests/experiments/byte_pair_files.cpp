#include <fmt/ranges.h>

#include "autograd/error.hpp"
#include "experiments/data/tokenizers/tokenizers.hpp"
#include "tests/json.hpp"
#include "tests/refusal.hpp"

// The files of a vocabulary of byte pairs: what is read of them, and what is wrong with them.

TEST_SUITE("byte_pair_files") {
  using namespace heed;

  std::string const small_text =
      "the cat and the other cat sat on the mats: banana bananas; zwei Wörterbücher, 字典 字典 2024 20242025\n\n";

  TEST_CASE_FIXTURE(test::InFolder, "files are read as they were written, by either pair of names") {
    auto const trained = train_byte_pairs(small_text, 350);
    write_byte_pairs(*trained, folder / "made/here");
    ReadFiles files;
    auto const same = [&](std::string const& name) {
      auto const back = read_byte_pairs(folder / name, &files);
      CHECK(back->tokens() == trained->tokens());
      CHECK(back->merges() == trained->merges());
      CHECK(back->encode(small_text) == trained->encode(small_text));
    };
    same("made/here");
    CHECK(files.at("tokenizer.tokens").file == (folder / "made/here/vocab.json").string());
    auto const tokens = test::get(folder / "made/here/vocab.json"), merges = test::get(folder / "made/here/merges.txt");
    CHECK(merges.starts_with("#version: 0.2\n"));
    std::filesystem::create_directories(folder / "openai");
    test::put(folder / "openai/encoder.json", tokens);
    test::put(folder / "openai/vocab.bpe", merges.substr(merges.find('\n') + 1) + "\n");  // without a version
    same("openai");
    test::put(folder / "openai/vocab.bpe", fmt::format("\xEF\xBB\xBF{}\r\n", fmt::join(test::lines_of(merges), "\r\n")));
    same("openai");
    auto const tokenizer = trained->json();
    CHECK(restore_tokenizer(tokenizer)->json() == tokenizer);
    CHECK(restore_tokenizer(tokenizer)->encode(small_text) == trained->encode(small_text));
  }

  TEST_CASE("what transformers keeps beside the vocabulary is read, or refused by file and key; tokenizer.json alone is enough") {
    test::Folder const folder;
    auto const trained = train_byte_pairs(small_text, 350);
    write_byte_pairs(*trained, folder.path());
    auto const vocabulary = test::json_of(folder / "vocab.json");
    auto const size = trained->vocabulary();
    auto const whole = [&](bool pairs_in_lists) {
      nlohmann::json merges = trained->merges();
      if (pairs_in_lists) merges = mapped(trained->merges(), test::split_words);
      return nlohmann::json{{"version", "1.0"},
                            {"normalizer", nullptr},
                            {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
                            {"post_processor", {{"type", "ByteLevel"}, {"trim_offsets", false}}},
                            {"added_tokens", {{{"id", size - 1}, {"content", "<|endoftext|>"}}, {{"id", size}, {"content", "[PAD]"}}}},
                            {"model", {{"type", "BPE"}, {"end_of_word_suffix", ""}, {"vocab", vocabulary}, {"merges", merges}}}};
    };
    auto const check_read = [&](BytePairs const& read) {
      CHECK(read.vocabulary() == size + 1);
      CHECK(read.find_special("[PAD]") == static_cast<std::int32_t>(size));
      CHECK(read.merges() == trained->merges());
      CHECK(read.encode(small_text) == trained->encode(small_text));
    };
    ReadFiles files;
    auto const read = [&] { return read_byte_pairs(folder.path(), &files); };
    test::put(folder / "added_tokens.json", fmt::format(R"({{"[PAD]": {}}})", size));
    test::put(folder / "special_tokens_map.json", R"({"eos_token": {"content": "<|endoftext|>"}, "pad_token": "[PAD]"})");
    test::put(folder / "tokenizer_config.json", R"({"add_prefix_space": false, "eos_token": "<|endoftext|>"})");
    check_read(*read());
    CHECK(files.contains("tokenizer.added"));
    std::filesystem::remove(folder / "vocab.json");
    std::filesystem::remove(folder / "merges.txt");
    for (bool const lists : {false, true}) {
      test::put(folder / "tokenizer.json", whole(lists).dump());
      check_read(*read());
    }

    struct Setting {
      std::string file, pointer;
      nlohmann::json value;
    };
    for (auto const& each : std::vector<Setting>{
             {"tokenizer_config.json", "/add_prefix_space", true},
             {"tokenizer_config.json", "/add_bos_token", true},
             {"tokenizer_config.json", "/eos_token", "[END]"},
             {"special_tokens_map.json", "/eos_token", {{"content", "[PAD]"}}},
             {"tokenizer.json", "/normalizer", {{"type", "NFC"}}},
             {"tokenizer.json", "/pre_tokenizer/type", "Metaspace"},
             {"tokenizer.json", "/pre_tokenizer/add_prefix_space", true},
             {"tokenizer.json", "/pre_tokenizer/use_regex", false},
             {"tokenizer.json", "/post_processor/type", "TemplateProcessing"},
             {"tokenizer.json", "/model/type", "Unigram"},
             {"tokenizer.json", "/model/end_of_word_suffix", "</w>"},
         }) {
      auto const file = folder / each.file;
      auto const before = test::get(file);
      test::change_json(file, [&](auto& json) { json[nlohmann::ordered_json::json_pointer(each.pointer)] = each.value; });
      std::string const said = test::refusal<FileError>([&] { read(); });
      CHECK_MESSAGE(said.starts_with(fmt::format("{}: {}: ", file.string(), each.pointer.substr(1))), said);
      test::put(file, before);
    }
    for (std::string const text : {"{}", "[]", "{\"model\": {\"vocab\": 3}}", "{"}) {
      test::put(folder / "tokenizer.json", text);
      CHECK(test::refusal<FileError>([&] { read(); }).starts_with(folder.path().string()));
    }
  }

  TEST_CASE_FIXTURE(test::InFolder, "a vocabulary that is wrong is refused by its file, and its line where there is one") {
    auto const trained = train_byte_pairs("ab ab ab abc abc", 260);  // a b, Ġ ab, …
    write_byte_pairs(*trained, folder / "good");
    auto const tokens = test::get(folder / "good/vocab.json");
    std::string const merges = test::get(folder / "good/merges.txt");
    REQUIRE(merges == "#version: 0.2\na b\nĠ ab\nĠab c\n");
    auto const with = [](std::string text, std::string const& from, std::string const& to) {
      auto const at = text.find(from);
      REQUIRE(at != text.npos);
      return text.replace(at, from.size(), to);
    };
    auto const refused = [&](std::string const& vocab_json, std::string const& merges_txt, std::string const& message) {
      CAPTURE(message);
      test::put(folder / "vocab.json", vocab_json);
      test::put(folder / "merges.txt", merges_txt);
      test::check_refusal(test::refusal<FileError>([&] { read_byte_pairs(folder.path()); }), folder.path(), message);
    };
    auto const bad_tokens = [&](std::string const& text, std::string const& message) { refused(text, merges, "vocab.json: " + message); };
    bad_tokens("", "the file is empty");
    for (char const* const text : {"[]", "3"}) bad_tokens(text, "is no object");
    bad_tokens("{", "the vocabulary is not JSON: error at byte 2");
    for (auto const& text : {tokens.substr(0, tokens.size() / 2), tokens + "}", std::string("\xFF\xFE{\0}\0", 6)})
      bad_tokens(text, "the vocabulary is not JSON");
    bad_tokens("{}", "there is no token for the byte 0x21, '!'");
    for (std::string const number : {"\"64\"", "-64", "64.5", "null", "[64]", "18446744073709551615"})
      bad_tokens(with(tokens, "\"a\":64", "\"a\":" + number), "the number of token 'a' is " + number);
    bad_tokens(with(tokens, "\"a\":64", "\"a\":1e99"), "the number of token 'a' is 1e+99");
    bad_tokens(with(tokens, "\"a\":64", "\"a\":260"), "the number of token 'a' is 260, but of 260 tokens each has one of 0 … 259");
    bad_tokens(with(tokens, "\"a\":64", "\"a\":65"), "the tokens 'a' and 'b' both have the number 65");
    bad_tokens(with(tokens, "\"a\":64", "\"a\":64,\"a\":64"), "the vocabulary names \"a\" twice");
    bad_tokens(with(tokens, "\"a\":64", "\"\":64"), "token 64 is empty");
    bad_tokens(with(tokens, "\"a\":64", "\"<a>\":64"), "there is no token for the byte 0x61, 'a'");
    bad_tokens(with(tokens, "\"Ġ\"", "\" \""), "there is no token for the byte 0x20, 'Ġ'");
    refused(with(tokens, "\"Ġabc\"", "\"<Ġabc>\""), merges, "merges.txt:4: 'Ġabc', which Ġab and c make, is no token of ");
    for (std::string const token : {"the end", "<>"})
      bad_tokens(with(tokens, "<|endoftext|>", token), "token '" + token + "' is made by no merge");
    bad_tokens(with(tokens, "{", "{\"abd\":260,"), "token 'abd' is made by no merge");
    auto const bad_merges = [&](std::string const& text, std::string const& message) { refused(tokens, text, "merges.txt" + message); };
    bad_merges("", ": the file is empty");
    bad_merges("ab\n", ":1: 'ab' is not two tokens");
    for (std::string const line : {"ab", "a b c", "a  b", " a b", "a b ", "a\tb"})
      bad_merges("#version: 0.2\n" + line + "\n", ":2: '" + line + "' is not two tokens");
    bad_merges("a b\n\nĠ ab\n", ":2: '' is not two tokens");
    bad_merges("a b\nx y\n", ":2: 'xy', which x and y make, is no token");
    bad_merges("a b\n字 b\n", ":2: '字' is no token");
    bad_merges("a b\na b\n", ":2: 'a b' stands twice");
    bad_merges("Ġ ab\na b\n", ":1: 'ab' is made by no merge before");
    bad_merges("a b\n#version: 0.2\n", ":2: '#version:' is no token");
    bad_merges("a b\n\xFF\xFE b\n", ":2: '\uFFFD\uFFFD' is no token");
    bad_merges(std::string("a b\nĠ\0 ab\n", 12), ":2: ");
    refused(tokens, "a b\nĠ ab\n", "vocab.json: token 'Ġabc' is made by no merge; do its merges belong to it, and are they all there?");
    refused(tokens, "#version: 0.2\n", "vocab.json: token 'ab' is made by no merge");
    auto const unread = [&](std::filesystem::path const& path, char const* message) {
      CHECK_THROWS_WITH_AS(read_byte_pairs(path), doctest::Contains(message), FileError);
    };
    std::filesystem::remove(folder / "merges.txt");
    unread(folder.path(), "merges.txt: no such file, but there is vocab.json beside it");
    std::filesystem::remove(folder / "vocab.json");
    unread(folder.path(), "holds no vocabulary");
    unread(folder / "good/vocab.json", "vocab.json: is not a folder with a vocabulary");
    unread(folder / "none", "none: is not a folder");
    std::filesystem::create_directories(folder / "vocab.json");
    test::put(folder / "merges.txt", merges);
    unread(folder.path(), "vocab.json: ");
  }

  TEST_CASE("a kept vocabulary that is wrong is no tokenizer") {
    auto const good = test::Json::parse(train_byte_pairs("ab ab ab abc abc", 260)->json());
    CHECK(restore_tokenizer(good.dump())->vocabulary() == 260);
    auto const refused = [&](std::string const& key, test::Json const& value, std::string const& message) {
      auto bad = good;
      bad.merge_patch({{key, value}});  // null takes a key away
      CHECK_THROWS_WITH_AS(restore_tokenizer(bad.dump()), doctest::Contains(("not a tokenizer: " + message).c_str()), Error);
    };
    for (char const* const key : {"tokens", "merges"}) refused(key, nullptr, "");
    refused("tokens", "a", "");
    refused("merges", {1, 2}, "");
    refused("merges", test::Json::array(), "its tokens: token 'ab' is made by no merge");
    refused("merges", {"a"}, "its merge 0: 'a' is not two tokens");
    refused("tokens", test::Json::array({"a", "a"}), "its tokens: token 'a' stands twice");
  }
}
