#include "experiments/data/text.hpp"

#include "autograd/random.hpp"
#include "experiments/data/tokenizers/tokenizers.hpp"
#include "nn/files/sha256.hpp"
#include "nn/files/utf8.hpp"
#include "tests/json.hpp"
#include "tests/refusal.hpp"

using namespace heed;

namespace {

std::vector<Index> values(Tensor const& tensor) {
  auto const data = tensor.data<std::int64_t>();
  return {data.begin(), data.end()};
}

/// A text in which no 3 characters in a row occur twice, so that a window tells where it is.
std::string numbered(int n) {
  std::string text;
  for (int i = 0; i < n; ++i) text += to_utf8(static_cast<char32_t>(0x100 + i));
  return text;
}

TextSettings settings_of(std::string const& tokenizer, double validation) {
  TextSettings settings;
  settings.tokenizer = tokenizer_choice(tokenizer);
  settings.validation = validation;
  return settings;
}

TextFiles text_of(std::string const& text) { return {text, {0}}; }

TextDataset dataset(std::string const& text, double validation, std::uint64_t seed = 1) {
  return {text_of(text), "words.txt", settings_of("char", validation), {.seed = seed}};
}

std::unique_ptr<Dataset> open(TextSettings const& settings, DataContext const& context) {
  return open_dataset({choice_of<DataKind>().options, "text", std::make_shared<TextSettings>(settings)}, context);
}
std::unique_ptr<Dataset> open(test::Folder const& folder, std::string const& path, std::string const& tokenizer = "char") {
  TextSettings settings;
  settings.path = path;
  settings.tokenizer = tokenizer_choice(tokenizer);
  return open(settings, {folder.path(), folder / "data", 1, true});
}

}  // namespace

TEST_SUITE("text") {
  TEST_CASE("tokenizers give back what they were given") {
    std::string const text = "Ein Wörterbuch – 字典 – \U0001F4D6\r\n\tend\n";
    auto const characters = character_tokenizer(text), bytes = byte_tokenizer();
    for (auto const& tokenizer : {characters, bytes}) {
      auto const tokens = tokenizer->encode(text);
      CHECK(tokenizer->decode({tokens.begin(), tokens.end()}) == text);
      for (auto token : tokens) CHECK((token >= 0 && token < tokenizer->vocabulary()));
    }
    std::string everything;
    for (int i = 0; i < 256; ++i) everything.push_back(static_cast<char>(i));
    auto const tokens = bytes->encode(everything);
    CHECK(bytes->decode({tokens.begin(), tokens.end()}) == everything);
    CHECK(bytes->vocabulary() == 256);
  }

  TEST_CASE("the characters are sorted by code point, not by byte or appearance") {
    auto const tokenizer = character_tokenizer("b\U0001F4D6aéz");
    CHECK(tokenizer->vocabulary() == 5);
    CHECK(tokenizer->decode({0, 1, 2, 3, 4}) == "abzé\U0001F4D6");
  }

  TEST_CASE("what is not known or not UTF-8 is refused by name and place") {
    auto const tokenizer = character_tokenizer("abc");
    CHECK_THROWS_WITH_AS(tokenizer->encode("aé"), "character 'é' (U+00E9) is not in the vocabulary of 3 characters", Error);
    CHECK_THROWS_WITH_AS(tokenizer->encode("a\n"), "character (U+000A) is not in the vocabulary of 3 characters", Error);
    CHECK_THROWS_WITH_AS(tokenizer->decode({0, 3}), "token 3 is outside the vocabulary of 3", Error);
    CHECK_THROWS_AS(tokenizer->decode({-1}), Error);
    for (std::string bad : {"ab\xf0", "ab\xc0\x80", "ab\xed\xa0\x80", "ab\xf4\x90\x80\x80", "ab\x80"})
      CHECK_THROWS_WITH_AS(character_tokenizer(bad), doctest::Contains("not UTF-8 at byte 2"), Error);
  }

  TEST_CASE("every validation token but the first is predicted exactly once, in order") {
    for (int n : {20, 40, 41, 47, 200}) {
      auto const text = numbered(n);
      auto const data = dataset(text, 0.5);
      auto const all = data.facts().tokenizer->encode(text);
      std::vector<Index> const held_out(all.begin() + n / 2, all.end());
      for (Index batch : {1, 3, 4})
        for (Index context : {1, 5, 7, 300}) {
          std::vector<Index> inputs, targets;
          auto const batches = data.validation_batches(batch, context);
          for (Index index = 0; index < batches; ++index) {
            auto const rows = data.validation(index, batch, context);
            Tensor const &x = rows["inputs"], &y = rows["next"];
            CHECK((x.shape() == y.shape() && x.size(0) <= batch && x.size(1) == context));
            CHECK((x.size(0) == batch || index == batches - 1));
            auto const xs = values(x), ys = values(y);
            for (std::size_t i = 0; i < ys.size(); ++i) {
              if (ys[i] == -1) CHECK(xs[i] == 0);
              if (ys[i] == -1) continue;
              inputs.push_back(xs[i]);
              targets.push_back(ys[i]);
            }
          }
          CHECK(inputs == std::vector<Index>(held_out.begin(), held_out.end() - 1));
          CHECK(targets == std::vector<Index>(held_out.begin() + 1, held_out.end()));
          CHECK_THROWS_AS(data.validation(batches, batch, context), Error);
        }
    }
  }

  TEST_CASE("a training batch is a function of seed and number, whatever the batch size") {
    auto const text = numbered(500);
    auto const data = dataset(text, 0.1), again = dataset(text, 0.1), other = dataset(text, 0.1, 2);
    auto const whole = data.training(0, 12, 16);
    CHECK(values(whole["inputs"]) == values(again.training(0, 12, 16)["inputs"]));
    CHECK(values(whole["inputs"]) != values(other.training(0, 12, 16)["inputs"]));
    CHECK(values(whole["inputs"]) != values(data.training(1, 12, 16)["inputs"]));
    auto const third = data.training(2, 4, 16);  // rows 8 … 11
    CHECK(values(third["inputs"]) == values(whole["inputs"].rows(8, 4).clone()));
    CHECK(values(third["next"]) == values(whole["next"].rows(8, 4).clone()));
    Stream const offsets(1, "data");
    for (std::uint64_t row = 0; row < 12; ++row)
      CHECK(whole["inputs"].data<std::int64_t>()[row * 16] == static_cast<Index>(offsets.below(row, 450 - 16)));
  }

  TEST_CASE("training windows are runs of the training text, targets one further; all of it is reached") {
    auto const data = dataset(numbered(60), 0.5);  // character i has number i
    std::set<Index> first;
    for (Index index = 0; index < 200; ++index) {
      auto const batch = data.training(index, 4, 8);
      auto const xs = values(batch["inputs"]), ys = values(batch["next"]);
      for (std::size_t i = 0; i < xs.size(); ++i) {
        CHECK(ys[i] == xs[i] + 1);
        if (i % 8) CHECK(xs[i] == xs[i - 1] + 1);
        CHECK(ys[i] < 30);
      }
      for (std::size_t row = 0; row < 4; ++row) first.insert(xs[row * 8]);
    }
    CHECK(first.size() == 30 - 8);
    CHECK(*first.rbegin() == 21);  // its last target is the last token
    CHECK(data.training(0, 1, 29)["inputs"].size(1) == 29);
    CHECK_THROWS_WITH_AS(data.training(0, 1, 30), "words.txt: its 30 training tokens are too few for a context of 30 (which needs 31)",
                         FileError);
  }

  TEST_CASE("no validation split, and one of its own") {
    auto const none = dataset("abcdef", 0);
    CHECK(none.validation_batches(4, 2) == 0);
    CHECK(none.reference_losses(1, 64).empty());
    CHECK(!none.describe().contains("ngram"));
    TextDataset const two(text_of("abcabc"), "words.txt", settings_of("char", 0.1), {}, text_of("xyz"), "held.txt");
    CHECK(two.facts().files.at("text").file == "words.txt");
    CHECK(two.facts().files.at("held_out").file == "held.txt");
    CHECK(two.facts().files.at("held_out").sha256 == sha256(std::as_bytes(std::span("xyz", 3))));
    CHECK(two.vocabulary() == 6);
    CHECK(two.describe()["tokens"]["training"] == 6);
    CHECK(values(two.validation(0, 1, 2)["inputs"]) == std::vector<Index>{3, 4});
  }

  TEST_CASE("a text to test on takes the validation split's place, and has no say in the vocabulary") {
    TextDataset data(text_of("abcabc"), "words.txt", settings_of("char", 0.1), {}, text_of("xyz"));
    data.test_on(text_of("cabz"), "test.txt");
    CHECK(data.vocabulary() == 6);
    CHECK(values(data.validation(0, 1, 3)["inputs"]) == std::vector<Index>{2, 0, 1});
    CHECK(data.describe()["tokens"] == test::Json{{"training", 6}, {"test", 4}});
    CHECK(data.describe()["test"]["file"] == "test.txt");
    CHECK(data.describe()["file"] == "words.txt");
    CHECK_THROWS_WITH_AS(data.test_on(text_of("abd"), "test.txt"), doctest::Contains("test.txt: "), FileError);
    CHECK_THROWS_WITH_AS(data.test_on(text_of("a"), "test.txt"), doctest::Contains("test.txt: too short to test on"), FileError);
    auto const* const folder = test::data_folder("HEED_DATA");
    auto const opened = [&](std::optional<std::string> const& path, std::optional<std::string> const& name) {
      TextSettings settings = settings_of("byte", 0.1);
      settings.path = path, settings.name = name;
      return open(settings, {".", folder != nullptr ? folder : "", 1, true, "test"});
    };
    CHECK_THROWS_WITH_AS(opened("a.txt", {}), doctest::Contains("data.path: a text file has no test part"), Error);
    CHECK_THROWS_WITH_AS(opened({}, "tinyshakespeare"), "data.name: 'tinyshakespeare' has no file `test` in the catalogue", Error);
    if (folder == nullptr || !std::ifstream(std::string(folder) + "/wikitext-2/test.txt")) return;
    CHECK(opened({}, "wikitext-2")->describe()["tokens"]["test"] == 1'256'449);
  }

  TEST_CASE_FIXTURE(test::InFolder, "a byte-order mark is no text, in either part, by characters or bytes; the hash is the file's") {
    std::string const mark = "\xEF\xBB\xBF", text = "one and two and three and four", held_out = "five and two and one";
    for (std::string const kind : {"char", "byte"}) {
      CAPTURE(kind);
      auto const third = settings_of(kind, 0.3), none = settings_of(kind, 0);
      TextDataset const plain(text_of(text), "t", third, {}), marked(text_of(mark + text), "t", third, {});
      CHECK(marked.vocabulary() == plain.vocabulary());
      for (Index i = 0; i < 3; ++i) CHECK(values(marked.training(i, 2, 5)["inputs"]) == values(plain.training(i, 2, 5)["inputs"]));
      CHECK(values(marked.validation(0, 2, 3)["inputs"]) == values(plain.validation(0, 2, 3)["inputs"]));
      CHECK(marked.describe()["sha256"] != plain.describe()["sha256"]);
      TextDataset const two(text_of(text), "t", none, {}, text_of(held_out));
      TextDataset const both(text_of(mark + text), "t", none, {}, text_of(mark + held_out));
      CHECK(both.vocabulary() == two.vocabulary());
      CHECK(values(both.validation(0, 4, 5)["inputs"]) == values(two.validation(0, 4, 5)["inputs"]));
      TextDataset tested(text_of(text), "t", third, {});
      tested.test_on(text_of(mark + "and one"), "test");
      auto const expected = tested.facts().tokenizer->encode("and ");
      CHECK(values(tested.validation(0, 1, 4)["inputs"]) == std::vector<Index>(expected.begin(), expected.end()));
    }
    test::put(folder / "plain.txt", text);
    test::put(folder / "marked.txt", mark + text);
    CHECK(open(folder, "marked.txt")->vocabulary() == open(folder, "plain.txt")->vocabulary());
  }

  TEST_CASE_FIXTURE(test::InFolder, "a path is relative to the configuration, then to the data folder") {
    std::filesystem::create_directories(folder / "data");
    test::put(folder / "data" / std::string("words.txt"), "there and there and there");
    CHECK(open(folder, "words.txt")->describe()["file"] == (folder / "data/words.txt").string());
    test::put(folder / "words.txt", "here and here and here and here");
    CHECK(open(folder, "words.txt")->describe()["file"] == (folder / "words.txt").string());
    CHECK(open(folder, (folder / "data/words.txt").string())->vocabulary() == 8);
  }

  TEST_CASE_FIXTURE(test::InFolder, "files that are no text end in one line that begins with the path") {
    std::filesystem::create_directories(folder / "folder.txt");
    std::filesystem::create_symlink("nowhere", folder / "dangling.txt");
    std::filesystem::create_symlink("loop.txt", folder / "loop.txt");
    std::vector<std::array<std::string, 3>> const files{
        {"missing", "", "no such file"},
        {"empty", "", "the file is empty"},
        {"two", "xy", "too short"},
        {"one", "x", "too short"},
        {"latin1", "caf\xe9 au lait, s'il vous pla\xeet", "not UTF-8 at byte 3 (0xE9)"},
        {"cut", "enough text here, and then half of a character: \xe2\x82", "not UTF-8 at byte 48 (0xE2)"},
        {"utf16", std::string("\xff\xfeh\0e\0l\0l\0o\0", 12), "not UTF-8 at byte 0 (0xFF)"},
        {"folder", "", "directory"},
        {"dangling", "", "no such file"},
        {"loop", "", "no such file"},
    };
    for (auto const& [name, content, message] : files) {
      auto const file = name + ".txt";
      if (name == "empty" || !content.empty()) test::put(folder / file, content);
      auto const said = test::refusal<FileError>([&] { open(folder, file); });
      CHECK_MESSAGE((said.find(file) != said.npos && said.find(message) != said.npos), said);
    }
    CHECK_THROWS_WITH_AS(open(folder, "one.txt", "byte"), doctest::Contains("too short"), FileError);
    CHECK(open(folder, "latin1.txt", "byte")->vocabulary() == 256);
  }

  TEST_CASE("settings contradict themselves") {
    TextSettings settings;
    CHECK(settings.contradiction().has_value());
    settings.path = "a";
    CHECK(!settings.contradiction());
    settings.name = "b";
    CHECK(settings.contradiction().has_value());
  }

  TEST_CASE("Tiny Shakespeare") {
    auto const* folder = test::data_folder("HEED_DATA");
    if (!folder || !std::ifstream(std::string(folder) + "/tinyshakespeare/input.txt")) {
      MESSAGE("not found below HEED_DATA: left out");
      return;
    }
    TextSettings settings;
    settings.name = "tinyshakespeare";
    auto const data = open(settings, {".", folder, 1, true});
    CHECK(data->vocabulary() == 65);
    auto const described = data->describe();
    CHECK(described["tokens"]["training"] == 1'003'854);
    CHECK(described["tokens"]["validation"] == 111'540);
    CHECK(described["sha256"] == "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed");
    double const known[] = {3.3473, 2.4858, 2.0492, 1.7738, 1.6688, 1.6981};
    auto const reference_losses = data->reference_losses(1, 64);
    REQUIRE(reference_losses.size() == 6);
    for (std::size_t order = 0; order < 6; ++order) {
      CHECK(reference_losses[order].first == std::to_string(order + 1) + "-gram");
      CHECK(std::abs(reference_losses[order].second - known[order]) < 6e-5);
    }
  }
}
