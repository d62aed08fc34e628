#include "experiments/commands/list.hpp"
#include "experiments/data/open.hpp"
#include "experiments/train/train.hpp"
#include "tests/experiments/said.hpp"
#include "tests/json.hpp"
#include "tests/nn/choice.hpp"
#include "tests/refusal.hpp"

TEST_SUITE("parallel_text") {
  using namespace heed;

  namespace {

  using Rows = std::vector<std::vector<Index>>;

  Rows rows_of(Tensor const& all) {
    auto const values = all.data<std::int64_t>();
    auto const length = all.rank() == 2 ? all.size(1) : 1;
    Rows rows;
    for (auto row = values.begin(); row != values.end(); row += length) rows.emplace_back(row, row + length);
    return rows;
  }

  std::vector<Rows> rows_of(Batch const& batch) {
    return {rows_of(batch["source"]), rows_of(batch["source_lengths"]), rows_of(batch["inputs"]), rows_of(batch["targets"]),
            rows_of(batch["lengths"])};
  }

  /// Files of a folder as data, as a configuration names them.
  struct Files {
    Files() = default;
    Files(std::string const& german, std::string const& english) {
      test::put(folder / "train.de", german);
      test::put(folder / "train.en", english);
    }
    std::unique_ptr<Dataset> open(test::Keys const& keys = {}, std::uint64_t seed = 1, std::string const& held_out = "validation") const {
      test::Keys all{{"train", "train"}, {"from", "de"}, {"to", "en"}, {"least_count", 1}};
      all.insert(all.end(), keys.begin(), keys.end());
      return open_dataset(test::chosen(choice_of<DataKind>(), "parallel", all), {folder.path(), folder / "data", seed, true, held_out});
    }
    /// What is said of data that are opened, and used so.
    std::string said(std::function<void(Dataset const&)> const& use, test::Keys const& keys = {}) const {
      return test::without_folder(test::refusal<FileError>([&] { use(*open(keys)); }), folder);
    }
    std::string said(test::Keys const& keys = {}) const {
      return said([](Dataset const&) {}, keys);
    }
    test::Folder folder;
  };

  test::Keys const validate_on_train{{"validation", "train"}};

  /// n pairs of which each can be told from its words: pair i has i % 7 + 1 words and its own number.
  Files numbered(int n) {
    std::string german, english;
    for (int i = 0; i < n; ++i) {
      for (int word = 0; word < i % 7; ++word) german += "wort ", english += "word ";
      german += std::to_string(i) + "\n";
      english += std::to_string(i) + "\n";
    }
    return {german, english};
  }

  /// The numbers of the pairs of a batch of numbered(): source and target must be of one pair.
  std::vector<std::string> numbers_of(Dataset const& data, Batch const& batch) {
    std::vector<std::string> numbers;
    auto const source = rows_of(batch["source"]), lengths = rows_of(batch["source_lengths"]), targets = rows_of(batch["targets"]);
    for (std::size_t row = 0; row < source.size(); ++row) {
      auto const last = at(source[row], lengths[row][0] - 2);
      auto const end = std::ranges::find(targets[row], Tokenizer::eos);
      CHECK(*(end - 1) == last);
      CHECK(end - targets[row].begin() == lengths[row][0] - 1);
      numbers.push_back(data.facts().tokenizer->decode({last}));
    }
    return numbers;
  }

  double padding(Batch const& batch) {
    double used = 0;
    for (auto const length : batch["lengths"].data<std::int64_t>()) used += static_cast<double>(length);
    for (auto const length : batch["source_lengths"].data<std::int64_t>()) used += static_cast<double>(length);
    return 1 - used / static_cast<double>(batch["inputs"].elements() + batch["source"].elements());
  }

  }  // namespace

  TEST_CASE("a batch holds source and <eos>, <bos> and target, target and <eos>, and how long they are") {
    Files const files("ein hund\nzwei\n", "a dog runs\ntwo\n");
    // 0 … 3 <pad> <bos> <eos> <unk>, 4 a, 5 dog, 6 ein, 7 hund, 8 runs, 9 two, 10 zwei
    auto const data = files.open(validate_on_train);
    CHECK(data->vocabulary() == 11);
    CHECK(data->signature()["source"].classes == 11);
    auto const batch = data->validation(0, 2, 10);
    CHECK(rows_of(batch["source"]) == Rows{{6, 7, 2}, {10, 2, 0}});
    CHECK(rows_of(batch["source_lengths"]) == Rows{{3}, {2}});
    CHECK(rows_of(batch["inputs"]) == Rows{{1, 4, 5, 8}, {1, 9, 0, 0}});
    CHECK(rows_of(batch["targets"]) == Rows{{4, 5, 8, 2}, {9, 2, -1, -1}});
    CHECK(rows_of(batch["lengths"]) == Rows{{4}, {2}});
    CHECK(data->validation_batches(1, 10) == 2);
    CHECK(rows_of(data->validation(1, 1, 10)["targets"]) == Rows{{9, 2}});
    CHECK_THROWS_AS(data->validation(2, 1, 10), Error);
    CHECK(data->facts().tokenizer->encode("a dog sees two") == std::vector<std::int32_t>{1, 4, 5, 3, 9});
    CHECK(data->facts().tokenizer->decode({1, 4, 5, 3, 2, 9, 2, 0}) == "a dog <unk>\ntwo\n");
  }

  TEST_CASE("a byte-order mark is no part of a first word, on either side") {
    std::string const mark = "\xEF\xBB\xBF";
    Files const plain("w2 w1\nw1\n", "v1\nv2\n"), marked(mark + "w2 w1\nw1\n", mark + "v1\nv2\n");
    auto const expected = plain.open(), found = marked.open();
    CHECK(found->tokenizer() == expected->tokenizer());
    CHECK(found->source_tokenizer() == expected->source_tokenizer());
    CHECK(rows_of(found->training(0, 2, 6)) == rows_of(expected->training(0, 2, 6)));
    CHECK(found->describe()["training"]["source"]["sha256"] != expected->describe()["training"]["source"]["sha256"]);
  }

  TEST_CASE("the other direction, vocabularies of their own, and words that are too rare") {
    Files const files("ein hund\nein tier\n", "a dog\na animal\n");
    auto const back = files.open({{"from", "en"}, {"to", "de"}, {"validation", "train"}});
    auto const forth = files.open(validate_on_train);
    CHECK(rows_of(back->validation(0, 2, 10)["targets"]) == rows_of(forth->validation(0, 2, 10)["source"]));

    auto const separate = files.open({{"vocabularies", "separate"}, {"least_count", 2}, {"validation", "train"}});
    CHECK(separate->vocabulary() == 5);
    CHECK(separate->signature()["source"].classes == 5);
    CHECK(rows_of(separate->validation(0, 2, 10)["source"]) == Rows{{4, 3, 2}, {4, 3, 2}});
    CHECK(rows_of(separate->validation(0, 2, 10)["targets"]) == Rows{{4, 3, 2}, {4, 3, 2}});
    CHECK(restore_tokenizer(separate->tokenizer())->decode({4}) == "a");
    CHECK(restore_tokenizer(separate->source_tokenizer())->decode({4}) == "ein");
    CHECK(forth->source_tokenizer() == forth->tokenizer());
  }

  TEST_CASE("a batch is a function of seed and number, and an epoch has every pair once") {
    auto const files = numbered(50);
    auto const one = files.open(), again = files.open(), other = files.open({}, 2);
    CHECK(rows_of(one->training(7, 4, 20)) == rows_of(again->training(7, 4, 20)));
    CHECK(rows_of(one->training(0, 4, 20)) != rows_of(other->training(0, 4, 20)));
    CHECK(rows_of(one->training(30, 4, 20)) == rows_of(again->training(30, 4, 20)));
    CHECK(rows_of(one->training(7, 4, 20)) == rows_of(again->training(7, 4, 20)));  // back from another epoch
    std::vector<std::string> epochs[2];
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (int batch = 0; batch < 12; ++batch)
        for (auto const& number : numbers_of(*one, one->training(epoch * 12 + batch, 4, 20))) epochs[epoch].push_back(number);
      CHECK(epochs[epoch].size() == 48);
      CHECK(std::set(epochs[epoch].begin(), epochs[epoch].end()).size() == 48);
    }
    CHECK(epochs[0] != epochs[1]);
  }

  TEST_CASE("rows of a batch are of about one length, and batches come in no order of length") {
    auto const files = numbered(700);
    double sorted = 0, unsorted = 0;
    auto const with = files.open(), without = files.open({{"pool", 1}});
    std::vector<Index> widths;
    for (int batch = 0; batch < 70; ++batch) {
      sorted += padding(with->training(batch, 10, 20)) / 70;
      unsorted += padding(without->training(batch, 10, 20)) / 70;
      widths.push_back(with->training(batch, 10, 20)["inputs"].size(1));
    }
    CHECK((sorted < 0.02 && unsorted > 0.3));
    CHECK((!std::ranges::is_sorted(widths) && !std::ranges::is_sorted(widths, std::ranges::greater{})));
  }

  TEST_CASE("what is wrong with a file is told in a line, with file and line") {
    for (auto const& [german, english, said] : std::vector<std::array<std::string, 3>>{
             {"a\nb\nc\n", "a\nb\n", "train.de:3: no translation: train.en ends after 2 lines, but this file has 3"},
             {"a\n", "a\nb\nc", "train.en:2: no translation: train.de ends after 1 lines, but this file has 3"},
             {"a\n\nc\n", "a\nb\nc\n", "train.de:2: the line is empty; every line needs a sentence, leave it out of both files"},
             {"a\nb\n", "a\n \t\r\n", "train.en:2: the line is empty; every line needs a sentence, leave it out of both files"},
             {"a\nb\n\n", "a\nb\n", "train.de:3: the line is empty; every line needs a sentence, leave it out of both files"},
             {"\n", "\n", "train.de:1: the line is empty; every line needs a sentence, leave it out of both files"},
             {"a\nb \xFF\n", "a\nb\n", "train.de:2: not UTF-8 at byte 2 of the line"},
             {"\xFF\xFE\n", "a\n", "train.de:1: not UTF-8 at byte 0 of the line"},
             {"a\n", "b \xE2\x82", "train.en:1: not UTF-8 at byte 2 of the line"},
             {"a\n", "\xED\xA0\x80\n", "train.en:1: not UTF-8 at byte 0 of the line"},
             {"a\n", "\xC0\xAF\n", "train.en:1: not UTF-8 at byte 0 of the line"},
             {"a\nb\n", "a\nb <eos>\n", "train.en:2: <eos> is a special token of the vocabulary, not a word"},
             {"<pad>\n", "a\n", "train.de:1: <pad> is a special token of the vocabulary, not a word"},
             {"a\n", "<bos> b\n", "train.en:1: <bos> is a special token of the vocabulary, not a word"},
             {"", "a\n", "train.de: the file is empty"},
             {"a\n", "", "train.en: the file is empty"},
             {"a <unk>\n", "a\n", ""},
             {"a\r\nb\r\n", "a\nb", ""}})
      CHECK(Files(german, english).said() == said);
    CHECK(Files().said().starts_with("train.de: no such file"));

    Files const files("a b c\na b c d\na\n", "a\nb c\nc\n");
    auto const training = [](Index batch, Index context) { return [=](Dataset const& data) { data.training(0, batch, context); }; };
    CHECK(files.said(training(3, 5)) == "");
    CHECK(files.said(training(3, 4)) ==
          "train.de:2: 4 words and <eos> do not fit a context of 4; make model.context 5 or more, or leave the line out of both files");
    CHECK(files.said(training(4, 5)) == "train.de: its 3 lines are too few for a batch of 4");
    CHECK(Files("a\n", "a b c\n").said(training(1, 3)).starts_with("train.en:1: 3 words and <eos> do not fit a context of 3"));
    auto const validation = [](Dataset const& data) { data.validation(0, 1, 2); };
    CHECK(Files("a\n", "a b\n").said(validation, validate_on_train).starts_with("train.en:1: 2 words and <eos> do not fit a context of 2"));
  }

  TEST_CASE("validation or test is held out, and its lines are the references") {
    Files const files("ein hund\nein tier\n", "a dog\nan animal\n");
    test::put(files.folder / "val.de", "ein hund\n"), test::put(files.folder / "val.en", "a  cat\r\n");
    test::put(files.folder / "test.de", "tier\nein hund läuft weg\n"), test::put(files.folder / "test.en", "animal\na dog\n");
    test::Keys const both{{"validation", "val"}, {"test", "test"}};
    auto const validation = files.open(both), test = files.open(both, 1, "test");
    CHECK(validation->validation_batches(1, 10) == 1);
    CHECK(test->validation_batches(1, 10) == 2);
    CHECK(test->facts().tokenizer->decode({rows_of(test->validation(0, 2, 10)["targets"])[0][0]}) == "animal");
    CHECK(*validation->original(0).reference == "a  cat");
    CHECK(!validation->original(1).reference);
    CHECK(*test->original(1).reference == "a dog");
    CHECK(!test->original(-1).reference);
    CHECK(test->signature() == validation->signature());
    CHECK(test->signature()["source"].longest == 5);
    CHECK((validation->describe().contains("validation") && !validation->describe().contains("test")));
    CHECK((test->describe()["test"]["pairs"] == 2 && !test->describe().contains("validation")));
    CHECK(rows_of(test->training(0, 2, 10)) == rows_of(validation->training(0, 2, 10)));
    CHECK_THROWS_WITH_AS(files.open({}, 1, "test"), doctest::Contains("data.test: there is no test text; add its files"), Error);
    CHECK_THROWS_WITH_AS(files.open(both, 1, "tests"), doctest::Contains("there is no part 'tests'"), Error);
  }

  TEST_CASE("data without a test part say so") {
    for (auto const& option : choice_of<DataKind>().options) {
      if (option.name == "parallel" || option.name == "text" || option.name == "digits" || option.name == "examples") continue;
      CAPTURE(option.name);
      CHECK_THROWS_WITH_AS(open_dataset(test::chosen(choice_of<DataKind>(), option.name), {.held_out = "test"}),
                           doctest::Contains(("data.kind: data of kind " + option.name).c_str()), Error);
    }
  }

  TEST_CASE("batches by tokens: every pair once an epoch, none larger than asked for, as many in each") {
    auto const files = numbered(300);
    test::Keys const by_tokens{{"tokens", 40}};
    auto const one = files.open(by_tokens), again = files.open(by_tokens), other = files.open(by_tokens, 2);
    auto const per_epoch = one->describe()["training"]["batch"]["per_epoch"].get<Index>();
    std::vector<std::vector<std::string>> epochs[2];
    Index widest = 0, max_tokens = 0;
    double padded = 0;
    std::vector<Index> widths;
    for (int epoch = 0; epoch < 2; ++epoch) {
      std::set<std::string> seen;
      for (int number = 0; number < per_epoch; ++number) {
        auto const batch = one->training(epoch * per_epoch + number, 7, 20);
        epochs[epoch].push_back(numbers_of(*one, batch));
        for (auto const& pair : epochs[epoch].back()) CHECK(seen.insert(pair).second);
        widths.push_back(batch["inputs"].size(1));
        widest = std::max(widest, widths.back());
        max_tokens = std::max(max_tokens, batch["inputs"].elements());
        padded += padding(batch) / static_cast<double>(per_epoch);
      }
      CHECK(seen.size() == 300);
    }
    CHECK(epochs[0] != epochs[1]);
    CHECK(max_tokens <= 40);
    CHECK(max_tokens == one->signature()["inputs"].max_tokens);
    CHECK(max_tokens == one->signature()["source"].max_tokens);
    CHECK(widest == one->signature()["inputs"].longest);
    CHECK(padded / 2 < 0.05);
    CHECK(!std::ranges::is_sorted(widths));
    CHECK(rows_of(one->training(5, 7, 20)) == rows_of(again->training(5, 99, 20)));
    CHECK(rows_of(one->training(5, 7, 20)) != rows_of(other->training(5, 7, 20)));
    CHECK(files.open()->signature()["inputs"].max_tokens == 0);
    auto const held_out = files.open({{"tokens", 40}, {"validation", "train"}});
    CHECK(held_out->validation(0, 64, 20)["inputs"].size(0) == 64);
  }

  TEST_CASE("of uneven sides, the most places that a batch by tokens has are those that there are") {
    Files const files("a\nb\na b c d e f g h\nb\n", "c\nd\nc\na b c d e\n");
    auto const data = files.open({{"tokens", 10}});
    // Sorted by the longer side: 2 + 2 places of two rows, then 6 (the target's) of one, then 9 (the source's) of one.
    CHECK(data->describe()["training"]["batch"]["per_epoch"] == 3);
    CHECK(data->signature()["source"].max_tokens == 9);
    CHECK(data->signature()["inputs"].max_tokens == 6);
  }

  TEST_CASE("pairs with a longer side are left out of training, and their words with them") {
    Files const files("a\na b c d\na\nb\n", "x\nx\nx y z y\ny\n");
    test::put(files.folder / "val.de", "a a a a a\n"), test::put(files.folder / "val.en", "z\n");
    auto const data = files.open({{"longest", 3}, {"validation", "val"}});
    CHECK(data->describe()["training"]["pairs"] == 2);
    CHECK(data->describe()["training"]["left_out"] == 2);
    CHECK(data->training(0, 2, 3)["source"].size(1) == 2);
    CHECK_THROWS_WITH_AS(data->training(0, 3, 9), doctest::Contains("its 2 lines are too few for a batch of 3"), FileError);
    CHECK(data->vocabulary() == 4 + 4);
    CHECK(data->validation(0, 1, 9)["source"].size(1) == 6);
    CHECK_THROWS_WITH_AS(data->training(0, 1, 1), doctest::Contains("train.de:1: 1 words"), FileError);
    test::check_holds(Files("a\na b c\nd\n", "x x x x\ny y\ny y\n").said({{"longest", 1}}),
                      {"of its 3 pairs none has at most 1 words on either side"});
    // A line's number is that of the file.
    CHECK(Files("a b c d e\na\na b c\n", "x\nx\nx\n")
              .said({{"longest", 4}, {"tokens", 3}})
              .starts_with("train.de:3: 3 words and <eos> are more than a batch of data.tokens: 3; make it 4 or more"));
  }

  TEST_CASE("a step's tokens are those that it has read, without padding") {
    Files const files("a\na b c\na b c d\na b\n", "x y\nx\nx y z\nx\n");
    test::put(files.folder / "a.yaml",
              "name: a\ndata: {kind: parallel, train: train, from: de, to: en, tokens: 5}\n"
              "model: {kind: transformer, layers: 1, heads: 1, width: 8, context: 5}\ntrain: {steps: 3, accumulate: 2}\n");
    auto const loaded = load_experiment(files.folder / "a.yaml", {}, {"", "", files.folder.path()});
    Trainer trainer(loaded, true);
    CHECK(trainer.tokens_in_words() == "at most 8 tokens a step");
    CHECK(trainer.tokens_read() == 0);
    Row row;
    trainer.train_step(row);
    trainer.train_step(row);
    CHECK(trainer.tokens_read() == 3 + 2 + 4 + 2);
  }

  TEST_CASE_FIXTURE(test::InFolder, "a configuration names stem and languages") {
    test::put(folder / "a.yaml",
              "name: a\ndata: {kind: parallel, train: t, from: de, to: en}\nmodel: {kind: gpt, layers: 1, heads: 1, width: 8}\n");
    CHECK(load_experiment(folder / "a.yaml", {}, {}).settings.data.kind == "parallel");
    test::check_holds(list("data", "parallel"),
                      {"train ", "validation ", "test ", "from ", "to ", "vocabularies ", "least_count ", "longest ", "pool ", "tokens "});
  }

  TEST_CASE("Multi30k: known sizes, and little padding" * doctest::skip(test::data_folder("HEED_DATA") == nullptr)) {
    std::filesystem::path const tok = std::filesystem::path(test::data_folder("HEED_DATA")) / "multi30k/tok";
    std::string const test_text = "test_2016_flickr.lc.norm.tok";
    auto const opened = [&](test::Keys const& keys, std::string const& held_out = "validation") {
      test::Keys all{{"train", "train.lc.norm.tok"}, {"from", "de"}, {"to", "en"}};
      all.insert(all.end(), keys.begin(), keys.end());
      return open_dataset(test::chosen(choice_of<DataKind>(), "parallel", all), {tok, {}, 1, true, held_out});
    };
    auto const joint = opened({{"validation", test_text}});
    // `cat train.*.{de,en} | tr ' ' '\n' | sort | uniq -c` has so many words that stand twice or more, and in one file 7,855 and 5,917.
    CHECK(joint->vocabulary() == 13639 + 4);
    CHECK(joint->describe()["training"]["pairs"] == 29000);
    CHECK(joint->describe()["validation"]["pairs"] == 1000);
    double share = 0;
    for (int batch = 0; batch < 226; ++batch) share += padding(joint->training(batch, 128, 64)) / 226;
    CHECK(share < 0.08);
    auto const by_tokens = opened({{"tokens", 2048}, {"test", test_text}}, "test");
    auto const per_epoch = by_tokens->describe()["training"]["batch"]["per_epoch"].get<Index>();
    CHECK((per_epoch > 200 && per_epoch < 240));
    CHECK(by_tokens->original(0).reference == "a man in an orange hat starring at something .");
    CHECK(by_tokens->signature()["source"].max_tokens <= 2048);
    share = 0;
    for (int batch = 0; batch < per_epoch; ++batch) share += padding(by_tokens->training(batch, 0, 64)) / static_cast<double>(per_epoch);
    CHECK(share < 0.12);
    auto const separate = opened({{"validation", test_text}, {"vocabularies", "separate"}});
    CHECK(separate->signature()["source"].classes == 7855 + 4);
    CHECK(separate->vocabulary() == 5917 + 4);
    // Another implementation's interpolated Witten–Bell models of the same text have perplexities of 206.6 and 42.6.
    CHECK(std::exp(separate->reference_losses(1, 64)[0].second) == doctest::Approx(206.6).epsilon(0.01));
    CHECK(std::exp(separate->reference_losses(1, 64)[1].second) == doctest::Approx(42.6).epsilon(0.01));
  }
}
