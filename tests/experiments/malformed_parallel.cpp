#include <doctest/doctest.h>
#include <sys/stat.h>

#include "tests/program.hpp"

// Texts and translations that are wrong, and configurations of them: one line that says where and what, with exit code 3 for a file and 2
// for the configuration.

TEST_SUITE("malformed_parallel") {
  using namespace heed;
  namespace fs = std::filesystem;

  namespace {

  using Words = std::vector<std::string>;

  constexpr char const* good_data = "data: {kind: parallel, train: t, validation: v, from: de, to: en}";
  constexpr char const* good_model = "model: {kind: transformer, layers: 1, heads: 2, width: 16, context: 8}";

  /// Good files and a configuration of five lines, of which a case replaces one.
  struct Bench {
    Bench() {
      put("t.de", "ein hund läuft\nein tier\nzwei hunde laufen\n"), put("t.en", "a dog runs\nan animal\ntwo dogs run\n");
      put("v.de", "ein hund\n"), put("v.en", "a dog\n");
    }
    void put(std::string const& name, std::string const& text) const { test::put(folder / name, text); }
    std::string at(std::string const& name) const { return (folder / name).string(); }

    std::vector<std::string> command(std::string const& data = good_data, std::string const& model = good_model,
                                     std::string const& train = "train: {steps: 2, batch: 2}") const {
      put("bad.yaml", "name: bad\nseed: 1\n" + data + "\n" + model + "\n" + train + "\n");
      return {"run", at("bad.yaml"), "--output", at("runs"), "--threads", "1", "--quiet", "--fresh"};
    }
    void refuses(int code, Words const& words, std::string const& data = good_data, std::string const& model = good_model,
                 std::string const& train = "train: {steps: 2, batch: 2}") const {
      CAPTURE(data);
      CAPTURE(model);
      test::refuses(command(data, model, train), code, words);
      CHECK(!fs::exists(folder / "runs"));
    }
    test::Folder folder;
  };

  }  // namespace

  TEST_CASE("the files and the configuration that the cases change are good ones, with words never seen as well") {
    Bench const bench;
    bench.put("v.de", "das nie gesehene <unk>\n");
    bench.put("v.en", "never\tseen  <unk> \r\n");
    CHECK(test::run_heed(bench.command()).code == 0);
    CHECK(test::run_heed(
              bench.command(
                  "data: {kind: parallel, train: t, from: en, to: de, tokens: 12, longest: 3, least_count: 1, vocabularies: separate}"))
              .code == 0);
  }

  TEST_CASE("files") {
    struct Case {
      std::string german, english, file;
      Words words;
    };
    std::string const three = "a b\nc d\ne f\n";
    for (auto const& [german, english, file, words] : std::vector<Case>{
             {"a\nb\nc\nd\n", three, "t.de:4: ", {"no translation", "t.en ends after 3 lines, but this file has 4"}},
             {"a\nb\n", three, "t.en:3: ", {"no translation", "t.de ends after 2 lines"}},
             {"\nb\nc\n", three, "t.de:1: ", {"the line is empty"}},
             {three, "a\n\nc\n", "t.en:2: ", {"the line is empty", "leave it out of both files"}},
             {three, "a\nb\nc\n\n", "t.en:4: ", {"the line is empty"}},
             {three, "a\n \t \r\nc\n", "t.en:2: ", {"the line is empty"}},
             {"\n", "\n", "t.de:1: ", {"the line is empty"}},
             {"a\nb \xff c\nd\n", three, "t.de:2: ", {"not UTF-8 at byte 2 of the line"}},
             {three, "a\nb\nc \xe2\x82", "t.en:3: ", {"not UTF-8 at byte 2 of the line"}},
             {"\xff\xfe"
              "a\n",
              three,
              "t.de:1: ",
              {"not UTF-8 at byte 0"}},
             {three, "a\nb\n\xed\xa0\x80\n", "t.en:3: ", {"not UTF-8 at byte 0"}},
             {three, "a\nb\n\xc0\xaf\n", "t.en:3: ", {"not UTF-8 at byte 0"}},
             {"a\n<bos> b\nc\n", three, "t.de:2: ", {"<bos> is a special token of the vocabulary, not a word"}},
             {three, "a\nb\nc <eos>\n", "t.en:3: ", {"<eos> is a special token of the vocabulary, not a word"}},
             {"<pad>\nb\nc\n", three, "t.de:1: ", {"<pad> is a special token of the vocabulary, not a word"}},
             {"", three, "t.de: ", {"the file is empty"}},
             {three, "", "t.en: ", {"the file is empty"}},
             {"a\na b c d e f g h\nb\n", three, "t.de:2: ", {"8 words and <eos> do not fit a context of 8; make model.context 9 or more"}},
             {three, "a\nb\nc d e f g h i j k\n", "t.en:3: ", {"9 words and <eos> do not fit a context of 8"}},
             {std::string(2'000'000, 'a') + " b\nc\nd\n", std::string("x ", 2) + three.substr(0, 4), "t.de:2: ", {"no translation: "}},
             {"a\n", "b\n", "t.de: ", {"its 1 lines are too few for a batch of 2"}},
         }) {
      Bench const bench;
      bench.put("t.de", german), bench.put("t.en", english);
      auto all = words;
      all.push_back(bench.at(file));
      bench.refuses(3, all, "data: {kind: parallel, train: t, from: de, to: en, least_count: 1}");
    }
  }

  TEST_CASE("held-out files are read before anything is trained") {
    for (std::string const part : {"validation", "test"}) {
      Bench const bench;
      auto const refuses = [&](Words const& words) {
        bench.refuses(3, words, "data: {kind: parallel, train: t, " + part + ": v, from: de, to: en, least_count: 1}");
      };
      bench.put("v.en", "a dog\nand more\n");
      refuses({bench.at("v.en:2: "), "no translation"});
      bench.put("v.en", "<pad>\n");
      refuses({bench.at("v.en:1: "), "<pad>"});
      fs::remove(bench.folder / "v.en");
      refuses({bench.at("v.en"), "no such file"});
    }
    Bench const bench;
    bench.put("v.en", "a b c d e f g h i\n");
    bench.refuses(3, {bench.at("v.en:1: "), "9 words and <eos> do not fit a context of 8"});
  }

  TEST_CASE("what is no file") {
    Bench const bench;
    fs::remove(bench.folder / "t.en");
    bench.refuses(3, {bench.at("t.en"), "no such file"});
    fs::create_directory(bench.folder / "t.en");
    bench.refuses(3, {bench.at("t.en"), "directory"});
    fs::remove(bench.folder / "t.en");
    REQUIRE(::mkfifo((bench.folder / "t.en").c_str(), 0600) == 0);
    bench.refuses(3, {bench.at("t.en"), "not a regular file"});
    fs::remove(bench.folder / "t.en");
    fs::create_symlink("t.en", bench.folder / "t.en");  // leads to itself
    bench.refuses(3, {"t.en"});
    fs::remove(bench.folder / "t.en");
    fs::create_symlink("nowhere", bench.folder / "t.en");
    bench.refuses(3, {"t.en", "no such file"});
  }

  TEST_CASE("configurations") {
    Bench const bench;
    auto const refuses = [&](std::string const& keys, Words words, int code = 2) {
      words.push_back(bench.at(code == 2 ? "bad.yaml:3:" : ""));
      bench.refuses(code, words, "data: {kind: parallel, " + keys + "}");
    };
    std::string const files = "train: t, from: de, to: en";
    refuses("from: de, to: en", {":3:7: missing key 'data.train'"});
    refuses("train: t, to: en", {":3:7: missing key 'data.from'"});
    refuses("train: t, from: de", {":3:7: missing key 'data.to'"});
    refuses("train: t, from: de, to: de", {":3:", "to: it is also the source language, de"});
    refuses("train: [t], from: de, to: en", {":3:31:", "data.train", "found a list"});
    refuses("train: {de: t}, from: de, to: en", {":3:31:", "data.train", "found a section"});
    refuses(files + ", validation: [v]", {":3:", "data.validation", "found a list"});
    refuses(files + ", vocabularies: one", {":3:66:", "data.vocabularies", "joint", "separate", "found 'one'"});
    refuses(files + ", vocabularies: seperate", {"did you mean 'separate'?"});
    refuses(files + ", vocabularys: joint", {":3:52: unknown key 'data.vocabularys'; did you mean 'vocabularies'?"});
    refuses(files + ", token: 100", {"unknown key 'data.token'; did you mean 'tokens'?"});
    refuses(files + ", longst: 10", {"unknown key 'data.longst'; did you mean 'longest'?"});
    refuses(files + ", tets: v", {"unknown key 'data.tets'; did you mean 'test'?"});
    refuses(files + ", to: fr", {":3:", "duplicate key 'data.to' (first in line 3)"});
    for (std::string const key : {"least_count", "longest", "pool"}) {
      for (std::string const value : {"0", "-1", "1.5", "many", "1e30", "99999999999999999999", ".nan", "[1]"})
        refuses(files + ", " + key + ": " + value, {":3:", "data." + key});
    }
    for (std::string const value : {"1", "0", "-64", "2.5", "1e12", ".inf", "few"})
      refuses(files + ", tokens: " + value, {":3:", "data.tokens"});
    refuses(files + ", least_count: 1000000",
            {"data.least_count: no word occurs 1000000 times or more", "the most frequent one occurs 2 times"});
    refuses(files + ", least_count: 2, vocabularies: separate", {"data.least_count: no word occurs 2 times or more"});
    refuses(files + ", least_count: 1, longest: 1", {"t.de: of its 3 pairs none has at most 1 words on either side"}, 3);
    refuses(files + ", least_count: 1, tokens: 3", {"t.de:1: 3 words and <eos> are more than a batch of data.tokens: 3"}, 3);
    refuses("train: no/such/stem, from: de, to: en", {"no/such/stem.de: no such file"}, 3);
    refuses("train: '', from: de, to: en", {".de: no such file"}, 3);
  }

  TEST_CASE("data that the model cannot read, and models too small for them") {
    Bench const bench;
    bench.refuses(2, {bench.at("bad.yaml:3:"), "found 'paralel'; did you mean 'parallel'?"},
                  "data: {kind: paralel, train: t, from: de, to: en}");
    bench.refuses(2, {bench.at("bad.yaml:3:"), "reads 'source', which these data do not give"}, "data: {kind: grammar}");
    std::string const data = "data: {kind: parallel, train: t, from: de, to: en, least_count: 1}";
    bench.refuses(3, {bench.at("t.de:1: "), "make model.context 4 or more"}, data,
                  "model: {kind: transformer, layers: 1, heads: 2, width: 16, context: 3}");
    bench.refuses(2, {bench.at("bad.yaml:4:"), "model.mlp_width"}, data, "model: {kind: transformer, mlp_width: 0}");
    bench.refuses(2, {bench.at("bad.yaml:4:"), "unknown key 'model.mlp_widht'; did you mean 'mlp_width'?"}, data,
                  "model: {kind: transformer, mlp_widht: 64}");
    bench.refuses(2, {bench.at("bad.yaml:4:"), "GB"}, data,
                  "model: {kind: transformer, layers: 1000, heads: 1, width: 65536, mlp_width: 1048576, context: 8}");
  }
}
