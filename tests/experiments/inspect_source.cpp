// heed inspect of a model that reads a source.

#include "experiments/commands/translator.hpp"
#include "experiments/data/tokenizers/tokenizers.hpp"
#include "nn/files/npz.hpp"
#include "tests/experiments/inspected_run.hpp"
#include "tests/experiments/said.hpp"

TEST_SUITE("inspect_source") {
  using namespace heed;
  using Run = test::InspectedRun;

  namespace {

  std::string const english = word_tokenizer({"a", "dog", "the"})->json(), german = word_tokenizer({"der", "hund"})->json();

  }  // namespace

  TEST_CASE("a source and a target: each attention has the labels of what looks and of what is looked at") {
    Run const run(english, "transformer", "", german);
    auto const shown = run("der hund fliegt", "the dog");
    test::check_holds(shown, {"\nlayer 0: encoder.blocks.0.attention, source attend to source, head 0\n",
                              "\nlayer 2: decoder.blocks.0.attention, inputs attend to inputs, head 2\n",
                              "\nlayer 5: decoder.blocks.1.cross_attention, inputs attend to source, head 1\n"});
    auto const cross = shown.substr(shown.find("layer 3: decoder.blocks.0.cross_attention"));
    auto const lines = test::lines_of(cross.substr(0, cross.find("\n\n")));
    REQUIRE(lines.size() == 2 + 3);
    test::check_holds(lines[1], {"der", "hund", "<unk>", "<eos>"});
    CHECK(lines[2].starts_with("  <bos> "));
    CHECK(lines[3].starts_with("  the "));
    CHECK(lines[4].starts_with("  dog "));

    auto const arrays = heed::read_npz(run.folder / "tiny/attention.npz");
    CHECK(arrays.at("source.labels").texts() == std::vector<std::string>{"der", "hund", "<unk>", "<eos>"});
    CHECK(arrays.at("inputs.labels").texts() == std::vector<std::string>{"<bos>", "the", "dog"});
    CHECK(arrays.at("source.tokens").tensor().shape() == Shape{4});
    CHECK(arrays.at("layer5.of").texts() == std::vector<std::string>{"decoder.blocks.1.cross_attention", "inputs", "source"});
    CHECK(arrays.at("layer5.weights").tensor().shape() == Shape{3, 3, 4});
    CHECK(arrays.size() == 16);
  }

  TEST_CASE("without a target the model's own is looked at, by greedy decoding or beam search") {
    Run const run(english, "transformer", "", german);
    auto const trained = open_run(run.folder / "tiny");
    Translator const translator(trained);
    auto const source = translator.read("der hund");
    for (Index const width : {1, 3}) {
      auto options = run.options("der hund");
      options.beam.width = width;
      auto const own = translator.text(translator.translate(std::span(&source, 1), options.beam).front().front().tokens);
      auto const shown = Run::shown(options);
      CHECK(shown.starts_with("the model writes: " + own + "\n"));
      CHECK(run("der hund", own) == shown.substr(shown.find('\n') + 1));
    }
    CHECK_THROWS_WITH_AS(run(" "), "--text: holds no words", ConfigError);
    auto const learned = Run(english, "transformer", ", position: learned", german);
    CHECK_THROWS_WITH_AS(learned("der der der der der der der der der der der der der der der der"),
                         "--text: 16 words and <eos>, but the model reads at most 16 tokens", ConfigError);
    CHECK_THROWS_WITH_AS(learned("der", "a a a a a a a a a a a a a a a a"), doctest::Contains("--target: 16 words"), ConfigError);
  }

  TEST_CASE("a source without a text: tokens by number, and a target that is given") {
    Run const run("", "transformer");
    CHECK(run("0 4 2", "1 3").find("layer 5: decoder.blocks.1.cross_attention") != std::string::npos);
    CHECK(heed::read_npz(run.folder / "tiny/attention.npz").at("source.labels").texts() == std::vector<std::string>{"0", "4", "2"});
    CHECK_THROWS_WITH_AS(run("0 4"), doctest::Contains("--target: is needed"), ConfigError);
    CHECK_THROWS_WITH_AS(run("0 4", "9"), doctest::Contains("--target: '9' is not the number of a token, 0 … 4"), ConfigError);
    CHECK_THROWS_WITH_AS(run("0 4", ""), "--target: holds no tokens", ConfigError);
  }

  TEST_CASE("a source or a target that is too long, or of no words, is refused") {
    std::string numbers;
    for (int i = 0; i < 2049; ++i) numbers += "1 ";
    Run const pairs("", "transformer", ", position: none");
    CHECK_THROWS_WITH_AS(pairs(numbers, "1"), doctest::Contains("--text: is 2049 tokens long"), ConfigError);
    CHECK_THROWS_WITH_AS(pairs("1", numbers), doctest::Contains("--target: is 2049 tokens long"), ConfigError);
    CHECK_THROWS_WITH_AS(Run(character_tokenizer("abcdé \n")->json(), "transformer")("abc"),
                         doctest::Contains("the source of its data has no tokens for beginning and end"), ConfigError);
  }
}
