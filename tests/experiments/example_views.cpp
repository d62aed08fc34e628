// Labelled examples as batches, and the ways of showing them to a model.

#include "autograd/error.hpp"
#include "experiments/data/examples/dataset.hpp"
#include "experiments/data/tokenizers/tokenizers.hpp"
#include "experiments/data/view.hpp"
#include "experiments/metric/spans.hpp"
#include "nn/heads/task_head.hpp"
#include "nn/models/bert.hpp"
#include "tests/experiments/said.hpp"
#include "tests/nn/choice.hpp"
#include "tests/refusal.hpp"

TEST_SUITE("example_views") {
  using namespace heed;

  namespace {

  using Tokens = std::vector<Index>;

  // Letters of "abcdexyz" are 0 … 7.
  constexpr Index words = 8, start = 8, delimiter = 9, extract = 10, cls = 8, sep = 9;

  std::unique_ptr<Dataset> dataset(Examples examples, std::uint64_t seed = 1) {
    return examples_data(std::move(examples), character_tokenizer("abcdexyz"), 1, seed);
  }

  Choice model(std::string const& kind, std::string const& head) {
    Choice choice = test::chosen(model_choice(), kind);
    auto& settings = dynamic_cast<TextStackSettings&>(*choice.settings);
    settings.head = test::chosen(settings.head, head);
    return choice;
  }

  std::unique_ptr<Dataset> seen_by(std::string const& kind, std::string const& head, Examples examples) {
    return viewed(dataset(std::move(examples)), model(kind, head), 1);
  }

  Tokens values(Batch const& batch, char const* part) {
    auto const all = batch[part].data<std::int64_t>();
    return {all.begin(), all.end()};
  }

  Example text(std::string first, std::string label) {
    return {.first = std::move(first), .label = std::move(label), .answers = {}, .location = "f:1"};
  }

  Examples texts() { return {{text("abc", "no"), text("de", "yes")}, {text("ab", "yes"), text("cdexy", "no")}, {"no", "yes"}, false, {}}; }

  Examples pairs(bool symmetric) {
    Example pair = text("ab", "yes");
    pair.second = "xyz";
    return {{pair}, {pair}, {"no", "yes"}, symmetric, {}};
  }

  Examples choices(std::string const& begin = "a") {
    Example choice{.first = begin, .options = {"xy", "z"}, .label = "1", .answers = {}, .location = "f:1"};
    return {{choice}, {choice}, {}, false, {}};
  }

  Example question(std::string passage, std::vector<Answer> answers) {
    return {.first = "ab", .second = std::move(passage), .answers = std::move(answers), .span = true, .location = "f:1"};
  }

  }  // namespace

  TEST_CASE("the baseline is the class that is most frequent in training, not among the held-out examples") {
    Examples examples{{text("a", "no"), text("b", "yes"), text("c", "yes")}, texts().held_out, {"no", "yes", "maybe"}, false, {}};
    examples.held_out.push_back(text("d", "no"));
    auto const found = dataset(examples)->facts().baselines;
    REQUIRE(found.size() == 1);
    CHECK(found[0].values[0].second == doctest::Approx(1.0 / 3));
    CHECK(found[0].values[1].second == doctest::Approx(-(std::log(3.0 / 6) + 2 * std::log(2.0 / 6)) / 3));
    CHECK(dataset(choices())->facts().baselines[0].values[0] == std::pair(std::string("accuracy"), 1.0));
    CHECK(dataset({{question("xyz", {})}, {question("xyz", {})}, {}, false, {}})->facts().baselines.empty());
  }

  TEST_CASE("a text: [start] text [extract], the targets of the language model beside it, and the label") {
    auto const data = seen_by("gpt", "classification", texts());
    CHECK(data->signature()["inputs"].classes == words + 3);
    CHECK(data->signature()["inputs"].longest == 7);
    CHECK(data->signature()["label"].classes == 2);
    Batch const batch = data->validation(0, 2, 16);
    CHECK(values(batch, "inputs") == Tokens{start, 0, 1, extract, 0, 0, 0, start, 2, 3, 4, 5, 6, extract});
    CHECK(values(batch, "targets") == Tokens{0, 1, extract, -1, -1, -1, -1, 2, 3, 4, 5, 6, extract, -1});
    CHECK(values(batch, "lengths") == Tokens{4, 7});
    CHECK(values(batch, "label") == Tokens{1, 0});
  }

  TEST_CASE("a text: [CLS] text [SEP], all of segment 0") {
    Batch const batch = seen_by("bert", "classification", texts())->validation(0, 1, 16);
    CHECK(values(batch, "inputs") == Tokens{cls, 0, 1, sep});
    CHECK(values(batch, "segments") == Tokens{0, 0, 0, 0});
    CHECK(!batch.has("targets"));
  }

  TEST_CASE("a pair, in its order; without one in both for a GPT") {
    Batch const one = seen_by("gpt", "classification", pairs(false))->validation(0, 1, 16);
    CHECK(values(one, "inputs") == Tokens{start, 0, 1, delimiter, 5, 6, 7, extract});
    auto const data = seen_by("gpt", "classification", pairs(true));
    Batch const both = data->validation(0, 1, 16);
    CHECK(data->signature()["inputs"].sequences == 2);
    CHECK(both["inputs"].shape() == Shape{1, 2, 8});
    CHECK(values(both, "inputs") == Tokens{start, 0, 1, delimiter, 5, 6, 7, extract, start, 5, 6, 7, delimiter, 0, 1, extract});
    Batch const bert = seen_by("bert", "classification", pairs(true))->validation(0, 1, 16);
    CHECK(values(bert, "inputs") == Tokens{cls, 0, 1, sep, 5, 6, 7, sep});
    CHECK(values(bert, "segments") == Tokens{0, 0, 0, 0, 1, 1, 1, 1});
  }

  TEST_CASE("exact_match: tokens of the second text that the first has too are of segment 2") {
    Examples examples = pairs(false);
    examples.held_out[0].first = "xaz";
    examples.exact_match = true;
    auto const data = seen_by("bert", "classification", examples);
    CHECK(data->signature()["segments"].classes == 3);
    CHECK(!data->signature().has("exact_match"));
    Batch const batch = data->validation(0, 1, 16);
    CHECK(values(batch, "inputs") == Tokens{cls, 5, 0, 7, sep, 5, 6, 7, sep});
    CHECK(values(batch, "segments") == Tokens{0, 0, 0, 0, 0, 2, 1, 2, 1});
    CHECK_THROWS_WITH_AS(seen_by("gpt", "classification", examples),
                         "data.exact_match: is encoded in segments, which this model does not read; bert does", Error);
  }

  TEST_CASE("options: a sequence each, with their lengths") {
    auto const data = seen_by("gpt", "choice", choices());
    CHECK(data->signature()["inputs"].sequences == 2);
    Batch const batch = data->validation(0, 1, 16);
    CHECK(batch["inputs"].shape() == Shape{1, 2, 6});
    CHECK(values(batch, "inputs") == Tokens{start, 0, delimiter, 5, 6, extract, start, 0, delimiter, 7, extract, 0});
    CHECK(values(batch, "lengths") == Tokens{6, 5});
    CHECK(values(batch, "label") == Tokens{1});
    CHECK(values(seen_by("bert", "choice", choices())->validation(0, 1, 16), "inputs") ==
          Tokens{cls, 0, sep, 5, 6, sep, cls, 0, sep, 7, sep, 0});
  }

  TEST_CASE("options as continuations: no special tokens, targets of the option alone") {
    auto const data = seen_by("gpt", "likelihood", choices());
    CHECK(data->signature()["inputs"].classes == words);
    Batch const batch = data->validation(0, 1, 16);
    CHECK(values(batch, "inputs") == Tokens{0, 5, 6, 0, 7, 0});
    CHECK(values(batch, "targets") == Tokens{5, 6, -1, 7, -1, -1});
  }

  TEST_CASE("of a text that is too long to be continued the beginning goes: what the option follows stays") {
    auto const data = seen_by("gpt", "likelihood", choices("abcde"));
    CHECK(values(data->validation(0, 1, 4), "inputs") == Tokens{3, 4, 5, 6, 2, 3, 4, 7});
    CHECK(data->facts().cut_short(6)->starts_with("1 of 1 training examples"));
  }

  TEST_CASE("an answer: its places, the passage's, and the summary token's where there is none") {
    Examples const asked{{question("cdexyz", {{"exy", 2}})}, {question("cdexyz", {{"exy", 2}}), question("cd", {})}, {}, false, {}};
    auto const bert = seen_by("bert", "span", asked);
    Batch const batch = bert->validation(0, 2, 16);
    CHECK(values(batch, "inputs") == Tokens{cls, 0, 1, sep, 2, 3, 4, 5, 6, 7, sep, cls, 0, 1, sep, 2, 3, sep, 0, 0, 0, 0});
    CHECK(values(batch, "passage") == Tokens{2, 0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 2, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0});
    CHECK(values(batch, "span") == Tokens{6, 8, 0, 0});
    Batch const gpt = seen_by("gpt", "span", asked)->validation(0, 2, 16);
    CHECK(values(gpt, "span") == Tokens{6, 8, 6, 6});
    CHECK(gpt["passage"].data<std::int64_t>()[10] == 2);
  }

  TEST_CASE("an answer is cut from the passage: unknown words, blanks and whole characters as they are written") {
    std::string const passage = "the   <unk> Zorn,\u00a0say a cat <unk> sat.";
    Examples const asked{{question(passage, {{"cat", 25}})}, {question(passage, {{"cat", 25}})}, {}, false, {}};
    auto const stretch = [&](std::shared_ptr<Tokenizer const> tokenizer, Index first, Index last) {
      return heed::stretch(examples_data(asked, std::move(tokenizer), 1, 1)->original(0), first, last);
    };
    auto const words = word_tokenizer({"a", "the"});
    CHECK(stretch(words, 0, 0) == "the");
    CHECK(stretch(words, 1, 2) == "<unk> Zorn,\u00a0say");
    CHECK(stretch(words, 4, 6) == "cat <unk> sat.");
    CHECK(stretch(words, 0, 6) == passage);
    CHECK(stretch(byte_tokenizer(), 17, 18) == "\u00a0");
    CHECK(stretch(byte_tokenizer(), 18, 21) == "\u00a0say");
    CHECK(stretch(byte_tokenizer(), 16, 17) == ",\u00a0");
    CHECK(stretch(byte_tokenizer(), 2, 6) == "e   <");
    // The answer behind an unknown word and the text <unk> is where it stands.
    Batch const batch = examples_data(asked, words, 1, 1)->validation(0, 1, 40);
    CHECK(values(batch, "answer") == Tokens{4, 4});
  }

  TEST_CASE("options go on as in pre-training: behind a blank, unless there is one, or the vocabulary has none, or it is said") {
    auto const seen = [](std::shared_ptr<Tokenizer const> tokenizer, Example const& example, std::string const& join = " ") {
      Examples examples{{example}, {example}, {}, false, {}};
      examples.join = join;
      Batch const batch = make_view("continued", examples_data(std::move(examples), tokenizer, 1, 1), 1)->validation(0, 1, 40);
      auto const tokens = values(batch, "inputs");
      return tokenizer->decode({tokens.begin(), tokens.begin() + values(batch, "lengths")[0]});
    };
    Example const choice{.first = "some", .options = {"nuns hide .", "x"}, .label = "0", .answers = {}, .location = "f:1"};
    Example paired = choice, ends = choice, begins = choice;
    paired.second = "old", ends.first = "some ", begins.options[0] = " nuns hide .";
    for (auto const& tokenizer : std::vector<std::shared_ptr<Tokenizer const>>{
             byte_tokenizer(), character_tokenizer("somenuhid .ldx"), word_tokenizer({".", "hide", "nuns", "old", "some", "x"}),
             train_byte_pairs("some nuns hide . some nuns hide . hide", 270)}) {
      CHECK(seen(tokenizer, choice) == "some nuns hide .");
      CHECK(seen(tokenizer, paired) == "some old nuns hide .");
      CHECK(seen(tokenizer, ends) == "some nuns hide .");
      CHECK(seen(tokenizer, begins) == "some nuns hide .");
    }
    CHECK(seen(byte_tokenizer(), choice, "") == "somenuns hide .");
    Example const blankless{.first = "ab", .options = {"c", "b"}, .label = "0", .answers = {}, .location = "f:1"};
    CHECK(seen(character_tokenizer("abc"), blankless) == "abc");
    // As one text is encoded, where a word begins with its blank.
    auto const bpe = train_byte_pairs("some nuns hide . some nuns hide . hide", 290);
    auto const data = make_view("continued", examples_data({{choice}, {choice}, {}, false, {}}, bpe, 1, 1), 1);
    auto const whole = bpe->encode("some nuns hide .");
    Tokens inputs = values(data->validation(0, 1, 40), "inputs");
    inputs.resize(whole.size());
    CHECK(inputs == Tokens(whole.begin(), whole.end()));
  }

  TEST_CASE("what does not fit is cut: the longest text first; in training the answer stays, in evaluation it may be lost") {
    Examples pair = pairs(false);
    pair.held_out[0].first = "abcde";
    Batch const batch = seen_by("gpt", "classification", pair)->validation(0, 1, 8);
    CHECK(values(batch, "inputs") == Tokens{start, 0, 1, 2, delimiter, 5, 6, extract});
    Examples const late{{question("cdexyz", {{"yz", 4}})}, {question("cdexyz", {{"yz", 4}})}, {}, false, {}};
    auto const data = seen_by("bert", "span", late);
    Batch const training = data->training(0, 1, 8), held_out = data->validation(0, 1, 8);
    CHECK(values(training, "inputs") == Tokens{cls, 0, 1, sep, 5, 6, 7, sep});
    CHECK(values(training, "span") == Tokens{5, 6});
    CHECK(values(held_out, "inputs") == Tokens{cls, 0, 1, sep, 2, 3, 4, sep});
    CHECK(values(held_out, "span") == Tokens{-1, -1});
    CHECK(*data->facts().cut_short(8) ==
          "1 of 1 training examples and 1 of 1 held-out ones have more than model.context: 8 tokens and are cut (the longest has 11); "
          "1 held-out answers are cut off: they count as wrong, and the loss is the mean of the others");
    CHECK(!data->facts().cut_short(11));
    // Of an answer that is cut in two nothing can be right, of none everything; training keeps what there is room for.
    Examples const halved{{question("cdexyz", {{"dexyz", 1}})}, {question("cdexyz", {{"ex", 2}}), question("cdexyz", {})}, {}, false, {}};
    auto const half = seen_by("bert", "span", halved);
    CHECK(values(half->validation(0, 2, 7), "span") == Tokens{-1, -1, 0, 0});
    CHECK(values(half->validation(0, 2, 8), "span") == Tokens{-1, -1, 0, 0});
    CHECK(values(half->validation(0, 2, 9), "span") == Tokens{6, 7, 0, 0});
    CHECK(values(half->training(0, 1, 8), "span") == Tokens{4, 6});
    test::check_holds(*half->facts().cut_short(8), {"; 1 held-out answers are cut off"});
    CHECK_THROWS_WITH_AS(data->validation(0, 1, 4), "model.context: leaves room for 1 tokens of an example", Error);
  }

  TEST_CASE("an epoch is every example once; the next has another order; another seed too") {
    Examples many{{}, {}, {"no", "yes"}, false, {}};
    for (char const letter : std::string("abcdexyz")) many.training.push_back(text(std::string(1, letter), letter < 'd' ? "no" : "yes"));
    many.held_out = many.training;
    auto const data = dataset(many, 1), other = dataset(many, 2);
    auto const epoch = [](Dataset const& from, Index number) {
      Tokens all;
      for (Index i = 0; i < 4; ++i)
        for (Index const token : values(from.training(4 * number + i, 2, 8), "first")) all.push_back(token);
      return all;
    };
    Tokens const first = epoch(*data, 0), second = epoch(*data, 1);
    CHECK(first != second);
    CHECK(first != epoch(*other, 0));
    for (Tokens all : {first, second}) {
      std::ranges::sort(all);
      CHECK(all == Tokens{0, 1, 2, 3, 4, 5, 6, 7});
    }
    CHECK_THROWS_WITH_AS(data->training(0, 9, 8), "train.batch: 9 examples are more than the 8 that there are", Error);
  }

  TEST_CASE("examples that are wrong are named by their place") {
    auto const refused = [](Example const& wrong) {
      Examples examples = texts();
      examples.training.push_back(wrong);
      examples.training.back().location = "data.tsv:7";
      return test::refusal<FileError>([&] { dataset(std::move(examples)); });
    };
    CHECK(refused(text("a", "yse")) == "data.tsv:7: there is no class 'yse'; did you mean 'yes'?");
    CHECK(refused(text("aß", "yes")).starts_with("data.tsv:7: character 'ß' (U+00DF) is not in the vocabulary"));
    CHECK(refused(question("cd", {})) == "data.tsv:7: asks for an answer, or asks for none, unlike the first example");
    Example options = text("a", "0");
    options.options = {"b"};
    CHECK(refused(options) == "data.tsv:7: has 1 options, the first example has 0");
    auto const question_refused = [](Answer const& answer) {
      return test::refusal<FileError>([&] { dataset({{question("cdexy", {answer})}, {}, {}, false, {}}); });
    };
    CHECK(question_refused({"ex", 1}) == "f:1: its answer 'ex' is not at byte 1 of the passage");
    CHECK(question_refused({"xyz", 3}) == "f:1: its answer 'xyz' is not at byte 3 of the passage");
  }

  TEST_CASE("the stretch of each token, of any tokenizer") {
    using Starts = std::vector<std::size_t>;
    auto const starts = [](Tokenizer const& tokenizer, std::string const& of) {
      auto tokens = tokenizer.encode(of);
      if (tokenizer.begin()) tokens.erase(tokens.begin());
      return tokenizer.starts(of, tokens);
    };
    CHECK(starts(*byte_tokenizer(), "aä") == Starts{0, 1, 2, 3});
    CHECK(starts(*character_tokenizer("aä"), "aäa") == Starts{0, 1, 3, 4});
    CHECK(starts(*word_tokenizer({"a", "dog"}), "a  cat, a dog") == Starts{0, 3, 8, 10, 13});
    CHECK(starts(*word_tokenizer({"a", "dog"}), " cat a <unk> dog cat\t<unk>, <bos> a ") == Starts{1, 5, 7, 13, 17, 21, 28, 34, 36});
    CHECK(starts(*word_tokenizer({"a", "un"}), "<unk>x <unk> a") == Starts{0, 7, 13, 14});
    CHECK(starts(*sentence_tokenizer({"a", "dog"}), "a  dog a") == Starts{0, 3, 7, 8});
    auto const bpe = train_byte_pairs("the dogs the dogs and the dogs <|endoftext|> ä ä", 270);
    std::string const text = "the dogs <unk> <|endoftext|>ä";
    auto const tokens = bpe->encode(text);
    auto const found = bpe->starts(text, tokens);
    for (std::size_t i = 0; i < tokens.size(); ++i) CHECK(text.substr(found[i], found[i + 1] - found[i]) == bpe->decode({tokens[i]}));
  }
}
