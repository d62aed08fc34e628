#include "tests/experiments/refused.hpp"

// Texts and translations that are wrong, and configurations of them: one line that says where and what, with exit code 3 for a file and 2
// for the configuration.

TEST_SUITE("malformed_parallel") {
  using namespace heed;
  namespace fs = std::filesystem;

  namespace {

  using test::BadFile, test::BadLine;

  /// Good files and the configuration that reads them.
  struct Bench : test::GoodRun {
    Bench()
        : GoodRun({"name: bad", "seed: 1", "data: {kind: parallel, train: t, validation: v, from: de, to: en, least_count: 1}",
                   "model: {kind: transformer, layers: 1, heads: 2, width: 16, context: 8}", "train: {steps: 2, batch: 2}"}) {
      put("t.de", "ein hund läuft\nein tier\nzwei hunde laufen\n"), put("t.en", "a dog runs\nan animal\ntwo dogs run\n");
      put("v.de", "ein hund\n"), put("v.en", "a dog\n");
    }
    void put(std::string const& name, std::string const& text) const { test::put(folder / name, text); }
  };

  }  // namespace

  TEST_CASE_FIXTURE(Bench, "the files and the configuration that the cases change are good ones, with words never seen as well") {
    put("v.de", "das nie gesehene <unk>\n");
    put("v.en", "never\tseen  <unk> \r\n");
    test::run_well(command());
    std::string const keys = "tokens: 12, longest: 3, least_count: 1, vocabularies: separate";
    test::run_well(command({"--fresh", "data={kind: parallel, train: t, from: en, to: de, " + keys + "}"}));
  }

  TEST_CASE_FIXTURE(Bench, "files: more in suite parallel_text") {
    auto const refuses = [&](std::string const& file, std::vector<BadFile> const& rows, std::string const& other, std::string const& text) {
      put(other, text);
      refuses_files(0, "", file, rows);
    };
    refuses("t.de",
            {
                {"a\nb\nc\nd\n", {"t.de:4: ", "no translation", "t.en ends after 3 lines, but this file has 4"}},
                {"a\na b c d e f g h\nb\n", {"t.de:2: ", "8 words and <eos> do not fit a context of 8; make model.context 9 or more"}},
            },
            "t.en", "a b\nc d\ne f\n");
    refuses("t.de", {{std::string(2'000'000, 'a') + " b\nc\nd\n", {"t.de:2: ", "no translation: "}}}, "t.en", "x a b\n");
    refuses("t.de", {{"a\n", {"t.de: ", "its 1 lines are too few for a batch of 2"}}}, "t.en", "b\n");
  }

  TEST_CASE("held-out files are read before anything is trained") {
    for (std::string const part : {"validation", "test"})
      Bench().refuses_files(3, "data: {kind: parallel, train: t, " + part + ": v, from: de, to: en, least_count: 1}", "v.en",
                            {
                                {"a dog\nand more\n", {"v.en:2: ", "no translation"}},
                                {"<pad>\n", {"v.en:1: ", "<pad>"}},
                                {test::gone, {"no such file"}},
                            });
    Bench().refuses_files(0, "", "v.en", {{"a b c d e f g h i\n", {"v.en:1: ", "9 words and <eos> do not fit a context of 8"}}});
  }

  TEST_CASE("what is no file") {
    Bench().refuses_files(0, "", "t.en",
                          {
                              {test::gone, {"no such file"}},
                              {test::folder_there, {"directory"}},
                              {test::pipe_there, {"not a regular file"}},
                              {test::link_to("t.en"), {}},  // leads to itself
                              {test::link_to("nowhere"), {"no such file"}},
                          });
  }

  TEST_CASE("configurations") {
    std::vector<BadLine> rows;
    auto const refuses = [&](std::string const& keys, test::Words const& words, int code = 2) {
      rows.push_back({3, "data: {kind: parallel, " + keys + "}", words, code});
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
    refuses(files + ", vocabularies: seperate", {":3:", "did you mean 'separate'?"});
    refuses(files + ", vocabularys: joint", {":3:52: unknown key 'data.vocabularys'; did you mean 'vocabularies'?"});
    refuses(files + ", token: 100", {":3:", "unknown key 'data.token'; did you mean 'tokens'?"});
    refuses(files + ", longst: 10", {":3:", "unknown key 'data.longst'; did you mean 'longest'?"});
    refuses(files + ", tets: v", {":3:", "unknown key 'data.tets'; did you mean 'test'?"});
    refuses(files + ", to: fr", {":3:", "duplicate key 'data.to' (first in line 3)"});
    for (std::string const key : {"least_count", "longest", "pool"})
      for (std::string const value : {"0", "-1", "1.5", "many", "1e30", "99999999999999999999", ".nan", "[1]"})
        refuses(files + ", " + key + ": " + value, {":3:", "data." + key});
    for (std::string const value : {"1", "0", "-64", "2.5", "1e12", ".inf", "few"})
      refuses(files + ", tokens: " + value, {":3:", "data.tokens"});
    refuses(files + ", least_count: 1000000",
            {":3:", "data.least_count: no word occurs 1000000 times or more", "the most frequent one occurs 2 times"});
    refuses(files + ", least_count: 2, vocabularies: separate", {":3:", "data.least_count: no word occurs 2 times or more"});
    refuses(files + ", least_count: 1, longest: 1", {"t.de: of its 3 pairs none has at most 1 words on either side"}, 3);
    refuses(files + ", least_count: 1, tokens: 3", {"t.de:1: 3 words and <eos> are more than a batch of data.tokens: 3"}, 3);
    refuses("train: no/such/stem, from: de, to: en", {"no/such/stem.de: no such file"}, 3);
    refuses("train: '', from: de, to: en", {".de: no such file"}, 3);
    Bench().refuses_lines(rows);
  }

  TEST_CASE("data that the model cannot read, and models too small for them") {
    Bench().refuses_lines({
        {3, "data: {kind: paralel, train: t, from: de, to: en}", {":3:", "found 'paralel'; did you mean 'parallel'?"}},
        {3, "data: {kind: grammar}", {":3:", "reads 'source', which these data do not give"}},
        {4, "model: {kind: transformer, layers: 1, heads: 2, width: 16, context: 3}", {"t.de:1: ", "make model.context 4 or more"}, 3},
        {4, "model: {kind: transformer, mlp_width: 0}", {":4:", "model.mlp_width"}},
        {4, "model: {kind: transformer, mlp_widht: 64}", {":4:", "unknown key 'model.mlp_widht'; did you mean 'mlp_width'?"}},
        {4, "model: {kind: transformer, layers: 1000, heads: 1, width: 65536, mlp_width: 1048576, context: 8}", {":4:", "GB"}},
    });
  }
}
