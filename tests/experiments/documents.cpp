#include <regex>

#include "autograd/error.hpp"
#include "experiments/data/files.hpp"
#include "experiments/data/text.hpp"
#include "tests/environment.hpp"
#include "tests/experiments/evaluated.hpp"
#include "tests/experiments/said.hpp"
#include "tests/json.hpp"
#include "tests/nn/choice.hpp"

// Texts of several documents or files, their tokens that are kept, and runs on them by every kind of tokenizer.

using namespace heed;

namespace {

using Views = std::vector<std::string_view>;

TextSettings settings_of(std::string const& tokenizer, std::string const& separator, double validation = 0.5) {
  TextSettings settings;
  settings.tokenizer = tokenizer_choice(tokenizer);
  settings.separator = separator;
  settings.validation = validation;
  return settings;
}

std::string held_out(TextDataset const& data) {
  auto const batch = data.validation(0, 1, 1000);
  auto const inputs = batch["inputs"].data<std::int64_t>(), next = batch["next"].data<std::int64_t>();
  std::vector<Index> tokens{inputs[0]};
  for (auto const token : next)
    if (token >= 0) tokens.push_back(token);
  return data.facts().tokenizer->decode(tokens);
}

/// A small training, its configuration and what its text needs in one folder.
struct Run {
  explicit Run(std::string const& more) { write("a.yaml", more); }
  void write(std::string const& name, std::string const& data) const {
    test::put(folder / name,
              fmt::format("name: {}\nmodel: {{kind: gpt, layers: 1, heads: 1, width: 8, context: 8}}\n"
                          "train: {{steps: 2, batch: 2, evaluate: {{metrics: [bits_per_byte, perplexity_per_word, perplexity_per_byte, "
                          "perplexity]}}}}\ndata: {}\n",
                          name.front(), data));
  }
  test::Outcome heed(std::vector<std::string> const& arguments) const {
    return test::run_heed(test::joined(arguments, {"--output", runs, "--threads", "1"}));
  }
  /// The results of `heed evaluate` on a text.
  test::Json evaluated(std::string const& text) const { return test::evaluated(folder, runs / "a", {"--text", text, "--threads", "1"}); }
  test::Folder folder;
  std::filesystem::path runs = folder / "runs";
};

}  // namespace

TEST_SUITE("documents") {
  TEST_CASE("documents are told apart by lines, blank lines, a line with a text, and files") {
    std::string_view const text = "a b\nc\n\n \nd\r\n---\ne\n";
    CHECK(documents_of(text, {0}, "none") == Views{text});
    CHECK(documents_of(text, {0}, "line") == Views{"a b", "c", "", " ", "d", "---", "e"});
    CHECK(documents_of(text, {0}, "blank_line") == Views{"a b\nc", "d\r\n---\ne"});
    CHECK(documents_of(text, {0}, "---") == Views{"a b\nc\n\n \nd", "e"});
    CHECK(documents_of(text, {0}, "file") == Views{"a b\nc\n\n \nd\r\n---\ne"});
    CHECK(documents_of(text, {0, 4}, "file") == Views{"a b", "c\n\n \nd\r\n---\ne"});
    CHECK(documents_of("x\ny", {0}, "line") == Views{"x", "y"});
    CHECK(documents_of("", {0}, "line").empty());
    CHECK(documents_of("---\n---\nx", {0}, "---") == Views{"x"});
    CHECK_THROWS_WITH_AS(documents_of(text, {0}, "lines"),
                         "no line is data.separator, 'lines'; did you mean 'line'?; none, file, line and blank_line name other separators",
                         Error);
  }

  TEST_CASE_FIXTURE(test::InFolder, "a folder is its files in order, whole, with the lines of each ended and without byte-order marks") {
    for (auto const& [name, text] :
         {std::pair("b.txt", "\xEF\xBB\xBFsecond"), std::pair("a.txt", "first\n"), std::pair("more/c.md", "third\n"),
          std::pair(".DS_Store", "no text"), std::pair(".hidden/d.txt", "no text")}) {
      std::filesystem::create_directories((folder / "texts" / name).parent_path());
      test::put(folder / "texts" / name, text);
    }
    auto const files = read_text_files(folder / "texts");
    CHECK(files.content == "first\nsecond\nthird\n");
    CHECK(files.begins == std::vector<std::size_t>{0, 6, 13});
    test::put(folder / "texts/empty.txt", "");
    CHECK_THROWS_WITH_AS(read_text_files(folder / "texts"), doctest::Contains("empty.txt: the file is empty"), FileError);
    CHECK_THROWS_WITH_AS(read_text_files(folder / "texts/.hidden/none"), doctest::Contains("none: "), FileError);
  }

  TEST_CASE("the end of a text stands behind each document, and none is cut in two") {
    TextFiles const text{"one two\nthree\nfour five\nsix\nseven\n", {0}};
    TextDataset const words(text, "t", settings_of("words", "line"), {});
    CHECK(words.describe()["tokens"] == test::Json{{"training", 3 + 2 + 3}, {"validation", 2 + 2}});
    CHECK(held_out(words) == "<unk>\n<unk>\n");
    CHECK(!words.facts().held_out_units);  // of words that are not the text's
    TextFiles const again{"one two\ntwo\none two\ntwo\none\n", {0}};
    TextDataset const known(again, "t", settings_of("words", "line"), {});
    CHECK(held_out(known) == "two\none\n");
    auto const units = known.facts().held_out_units.value();
    CHECK(units.tokens == 4);
    CHECK(units.words == 4);  // two words, two line ends
    CHECK(units.bytes == 8);
    TextDataset const stream(again, "t", settings_of("words", "none", 0), {});
    CHECK(stream.describe()["tokens"]["training"] == 7);
    for (std::string const without : {"char", "byte"})
      CHECK_THROWS_WITH_AS(
          TextDataset(text, "t", settings_of(without, "line"), {}),
          doctest::Contains(("data.separator: a tokenizer of kind '" + without + "' has no token for the end of a document").c_str()),
          Error);
    CHECK_THROWS_WITH_AS(TextDataset(text, "t", settings_of("words", "no such line"), {}),
                         doctest::Contains("t: no line is data.separator"), FileError);
  }

  TEST_CASE("a text is cut between characters, but by bytes between bytes") {
    TextFiles const text{"ääääbbbb", {0}};  // 8 characters, 12 bytes
    CHECK(TextDataset(text, "t", settings_of("char", "none"), {}).describe()["tokens"]["training"] == 4);
    CHECK(TextDataset(text, "t", settings_of("byte", "none"), {}).describe()["tokens"]["training"] == 6);
    auto const units = TextDataset(text, "t", settings_of("char", "none"), {}).facts().held_out_units.value();
    CHECK(units.bytes == 4);
    CHECK(units.words == 1);
  }

  TEST_CASE("WikiText-2 has the words that its publishers count") {
    auto const* const folder = test::data_folder("HEED_DATA");
    if (folder == nullptr || !std::ifstream(std::string(folder) + "/wikitext-2/test.txt")) {
      MESSAGE("not found below HEED_DATA: left out");
      return;
    }
    auto const read = [&](std::string const& part) { return read_text_files(std::string(folder) + "/wikitext-2/" + part + ".txt"); };
    TextDataset text(read("train"), "train.txt", settings_of("words", "line", 0), {});
    CHECK(text.vocabulary() == 33'278 + 2);  // <pad> and <bos> besides
    CHECK(text.describe()["tokens"]["training"] == 2'088'628);
    for (auto const& [part, count] : {std::pair("valid", 217'646), std::pair("test", 245'569)}) {
      text.test_on(read(part), part);
      CHECK(text.facts().held_out_units->tokens == count);
      CHECK(text.facts().held_out_units->words == count);
    }
    CHECK(text.facts().held_out_units->bytes == 1'256'449);
  }

  TEST_CASE_FIXTURE(test::InFolder, "tokens come back from the file that keeps them, or are made again where it is damaged") {
    test::Environment const cache("XDG_CACHE_HOME", folder.path().string());
    int made = 0;
    auto const tokens = [&](std::string const& key, std::vector<std::int32_t> const& made_of = {5, 0, -1, 1 << 30}) {
      auto const text = kept_tokens(key, [&] { return ++made, made_of; });
      return std::vector<std::int32_t>(text.tokens.begin(), text.tokens.end()) == made_of;
    };
    CHECK(tokens("a"));
    CHECK(tokens("a"));
    CHECK(made == 1);
    CHECK(tokens("none", {}));
    CHECK(tokens("none", {}));
    CHECK(made == 2);
    auto const file = folder / "heed/tokens/a";
    auto const good = test::get(file);
    CHECK(good.size() == 80 + 16);
    auto const made_again = [&](std::string const& bad) {
      std::filesystem::remove(file);
      test::put(file, bad);
      made = 0;
      CHECK(tokens("a"));
      CHECK(made == 1);
      CHECK(test::get(file) == good);
    };
    for (std::size_t i = 0; i < good.size(); ++i) made_again(test::flipped(good, i));
    for (std::size_t size = 0; size < good.size(); size += 3) made_again(good.substr(0, size));
    made = 0;  // of another text, under this one's name
    std::filesystem::copy_file(file, folder / "heed/tokens/b");
    CHECK(tokens("b", {1, 2}));
    CHECK(made == 1);
    std::filesystem::remove_all(folder / "heed");
    test::put(folder / "heed", "a file where the folder should be");
    made = 0;
    CHECK(tokens("a"));
    CHECK(tokens("a"));
    CHECK(made == 2);
    std::filesystem::remove(folder / "heed");
    // A text that is long enough, by byte pairs: the same with and without its file.
    std::string long_text;
    for (int i = 0; long_text.size() < (9 << 20); ++i) long_text += fmt::format("line {} of the text\n", i % 977);
    auto settings = settings_of("bpe", "line", 0);
    settings.tokenizer = test::chosen(settings.tokenizer, "bpe", {{"size", Index{300}}});
    std::vector<double> rows[2];
    for (auto& each : rows) each = TextDataset({long_text, {0}}, "t", settings, {}).training(0, 4, 64)["inputs"].to_vector();
    CHECK(rows[0] == rows[1]);
    CHECK(std::distance(std::filesystem::directory_iterator(folder / "heed/tokens"), {}) == 1);
  }

  TEST_CASE("a run has its tokenizer, whatever becomes of the vocabulary's folder, and hands it on") {
    Run const run("{kind: text, path: texts, tokenizer: {kind: bpe, vocabulary: made}, separator: file, validation: 0.4}");
    std::filesystem::create_directories(run.folder / "texts");
    for (int i = 0; i < 9; ++i)
      test::put(run.folder / fmt::format("texts/{}.txt", i), fmt::format("the {} dogs and the cats\nsee {} dogs\n", i, i * i));
    auto const trained = run.heed({"tokenize", (run.folder / "texts").string(), "--train", "270"});
    CHECK(trained.output.starts_with(run.runs.string() + ": 270 tokens\n"));
    std::filesystem::rename(run.runs, run.folder / "made");
    auto const ids = (run.folder / "ids").string();
    auto const told = run.heed({"tokenize", (run.folder / "texts").string(), "--vocabulary", (run.folder / "made").string(), "--ids", ids});
    CHECK(told.code == 0);
    test::check_holds(told.output, {"tokens "});
    CHECK(test::get(ids).size() % 4 == 0);

    auto const config = (run.folder / "a.yaml").string(), folder = (run.runs / "a").string();
    test::check_ends(run.heed({"run", config}), 0);
    auto const row = test::json_rows(run.runs / "a/metrics.jsonl").back();
    double const loss = row["validation.loss"];
    auto const summary = test::summary_of(run.runs / "a");
    CHECK(summary["read"].contains("tokenizer.merges"));
    double const tokens = summary["data"]["tokens"]["validation"], bytes = 3 * 36;  // the last three files
    CHECK(summary["data"]["vocabulary"] == 270);
    double const a_byte = loss * tokens / bytes;
    CHECK(row["validation.bits_per_byte"].get<double>() == doctest::Approx(a_byte / std::log(2.0)));
    CHECK(row["validation.perplexity_per_byte"].get<double>() == doctest::Approx(std::exp(a_byte)));
    CHECK(row["validation.perplexity_per_word"].get<double>() == doctest::Approx(std::exp(loss * tokens / (3 * (9 + 2)))));

    auto const one = (run.folder / "texts/1.txt").string();  // 9 words and 2 line ends
    CHECK(run.evaluated(one)["text"]["words"] == 11);
    auto const counted = run.heed({"tokenize", one, "--vocabulary", (run.folder / "made").string()}).output;
    CHECK(std::regex_search(counted, std::regex(" words +11\n")));

    std::filesystem::remove_all(run.folder / "made");
    test::check_ends(run.heed({"sample", folder, "--tokens", "3"}), 0);
    test::check_ends(run.heed({"inspect", folder, "--text", "the dogs"}), 0);
    test::check_ends(run.heed({"evaluate", folder}), 0);
    run.write("b.yaml", "{kind: text, path: texts, tokenizer: {kind: run, from: runs/a}}");
    CHECK(run.heed({"run", (run.folder / "b.yaml").string()}).code == 0);
    CHECK(test::summary_of(run.runs / "b")["data"]["vocabulary"] == 270);
    run.write("c.yaml", "{kind: text, path: texts, tokenizer: {kind: run, from: texts}}");
    test::refuses({"run", (run.folder / "c.yaml").string()}, 3, {"texts/checkpoint.safetensors: cannot be read: No such file"});
    test::put(run.folder / "d.yaml",
              "name: d\nmodel: {kind: gpt, layers: 1, heads: 1, width: 8, context: 32}\ntrain: {steps: 1, batch: 2}\ndata: copy\n");
    CHECK(run.heed({"run", (run.folder / "d.yaml").string()}).code == 0);
    run.write("c.yaml", "{kind: text, path: texts, tokenizer: {kind: run, from: runs/d}}");
    test::refuses({"run", (run.folder / "c.yaml").string()}, 3, {"checkpoint.safetensors: its metadata hold no tokenizer"});
    run.write("c.yaml", "{kind: text, path: texts, tokenizer: {kind: bpe, vocabulary: texts}}");
    test::refuses({"run", (run.folder / "c.yaml").string()}, 3, {"texts: holds no vocabulary"});
  }

  TEST_CASE("evaluate --text reads a text as the run reads its own, and divides by what is predicted") {
    for (std::string const separator : {"line", "blank_line", "none", "---"})
      for (std::string const tokenizer : {"words", "{kind: bpe, size: 270}"}) {
        INFO("separator ", separator, ", tokenizer ", tokenizer);
        Run const run(fmt::format("{{kind: text, path: t.txt, tokenizer: {}, separator: '{}', validation: 0.5}}", tokenizer, separator));
        std::string half;  // of the text: 20 documents
        for (int i = 0; i < 20; ++i)
          half += fmt::format("the {} dogs\n{}", 10 + i, separator == "blank_line" ? "\n" : separator == "---" ? "---\n" : "");
        test::put(run.folder / "t.txt", half + half);
        test::put(run.folder / "half.txt", half);
        test::check_ends(run.heed({"run", (run.folder / "a.yaml").string()}), 0);
        auto const found = run.evaluated(run.folder / "half.txt");
        double const loss = found["metrics"]["loss"], tokens = found["tokens"];
        auto const summary = test::summary_of(run.runs / "a");
        CHECK(tokens + 1 == summary["data"]["tokens"]["validation"].get<double>());
        CHECK(loss == doctest::Approx(summary["validation.loss"].get<double>()).epsilon(1e-5));
        if (tokenizer == "words") {  // the first token is the word "the " of 4 bytes
          CHECK(found["metrics"]["bits_per_byte"].get<double>() ==
                doctest::Approx(loss * tokens / std::log(2.0) / (static_cast<double>(half.size()) - 4)));
          CHECK(found["metrics"]["perplexity_per_word"].get<double>() ==
                doctest::Approx(std::exp(loss * tokens / (found["text"]["words"].get<double>() - 1))));
        }
      }
  }

  TEST_CASE("a run of which an earlier revision wrote the tokenizer as a word, and no separator, is that run still") {
    Run const run("{kind: text, path: t.txt}");
    std::string text;
    for (int i = 0; i < 99; ++i) text += "the dogs that see the cats\n";
    test::put(run.folder / "t.txt", text);
    auto const config = (run.folder / "a.yaml").string();
    REQUIRE(run.heed({"run", config}).code == 0);
    auto const kept = run.runs / "a/config.yaml";
    auto now = test::get(kept);
    std::string const section = "  tokenizer: {kind: char}\n  separator: none\n";
    REQUIRE(now.find(section) != now.npos);
    now.replace(now.find(section), section.size(), "  tokenizer: char\n");
    test::put(kept, now);
    test::check_ends(run.heed({"run", config}), 0);
    test::check_ends(run.heed({"run", config, "data.tokenizer=byte"}), 2, {"data.tokenizer.kind"});
  }
}
