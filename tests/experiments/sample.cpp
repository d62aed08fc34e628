#include "autograd/blas/products.hpp"
#include "experiments/commands/commands.hpp"
#include "experiments/data/tokenizers/tokenizers.hpp"
#include "tests/experiments/untrained_run.hpp"

TEST_SUITE("sample") {
  using namespace heed;

  namespace {

  struct Run {
    explicit Run(std::string const& tokenizer, double weight = 0) {
      auto const size = tokenizer.empty() ? 5 : restore_tokenizer(tokenizer)->vocabulary();
      auto const with_weight = [weight](Parameters& parameters) {
        if (weight != 0) parameters.all().front().second.detach().mutable_data<float>()[0] = static_cast<float>(weight);
      };
      test::save_untrained(folder, "init: {std: 0.5}\nmodel: {kind: gpt, layers: 1, heads: 2, width: 8, context: 16}\n",
                           Signature::tokens(size), {{"tokenizer", tokenizer}}, with_weight);
    }

    SampleOptions options() const {
      SampleOptions result;
      result.run = folder / "tiny";
      result.tokens = 40;
      return result;
    }
    test::Folder folder;
  };

  std::string sampled(SampleOptions const& options) {
    std::ostringstream out;
    auto const code = sample(options, out);  // outside of CHECK, which would keep exceptions for itself
    CHECK(code == Exit::done);
    return out.str();
  }

  using test::lines_of;

  std::string const letters = character_tokenizer("abcdé\n")->json();
  std::string const words = sentence_tokenizer({"a", "cat", "dog", "sees"})->json();

  }  // namespace

  TEST_CASE("tokenizers come back from what is kept with a model") {
    for (auto const& tokenizer :
         {character_tokenizer("xyé\n\"\\"), byte_tokenizer(), sentence_tokenizer({"a", "cat"}), word_tokenizer({"a", "cat"})}) {
      auto const back = restore_tokenizer(tokenizer->json());
      CHECK(back->vocabulary() == tokenizer->vocabulary());
      CHECK(back->json() == tokenizer->json());
      CHECK(back->end() == tokenizer->end());
      CHECK(back->begin() == tokenizer->begin());
      std::vector<Index> all(static_cast<std::size_t>(back->vocabulary()));
      std::iota(all.begin(), all.end(), 0);
      CHECK(back->decode(all) == tokenizer->decode(all));
    }
    for (char const* broken : {"", "{", "[]", "{}", R"({"kind": "word"})", R"({"kind": 1})", R"({"kind": "char"})",
                               R"({"kind": "char", "characters": 3})", R"({"kind": "sentences", "words": ["b", "a"]})",
                               R"({"kind": "words", "words": ["a", "a"]})", R"({"kind": "words", "words": ["<bos>"]})"}) {
      CAPTURE(broken);
      CHECK_THROWS_WITH_AS(restore_tokenizer(broken), doctest::Contains("not a tokenizer"), Error);
    }
  }

  TEST_CASE("words of a vocabulary: others are <unk>, and marks are no text") {
    auto const tokenizer = word_tokenizer({"cat", "dog"});
    CHECK(tokenizer->vocabulary() == 6);
    auto const tokens = tokenizer->encode(" dog  bird\tcat\n");
    CHECK(tokens == std::vector<std::int32_t>{1, 5, 3, 4});
    CHECK(tokenizer->decode({tokens.begin(), tokens.end()}) == "dog <unk> cat");
    CHECK(*tokenizer->begin() == 1);
    CHECK(*tokenizer->end() == 2);
    CHECK(*tokenizer->mark(0) == "<pad>");
    CHECK(*tokenizer->mark(1) == "<bos>");
    CHECK(*tokenizer->mark(2) == "<eos>");
    for (Index const token : {3, 4, 5}) CHECK(!tokenizer->mark(token));
    CHECK(*sentence_tokenizer({"a"})->mark(0) == "<eos>");
    CHECK(!byte_tokenizer()->mark(0));
  }

  TEST_CASE("text: the prompt, then so many characters, the same for the same seed") {
    Run const run(letters);
    auto options = run.options();
    auto const plain = sampled(options);
    CHECK(plain == sampled(options));
    auto const characters = character_tokenizer(plain)->encode(plain).size();
    CHECK(characters - (plain.back() == '\n' ? 1 : 0) <= 40);
    CHECK(characters >= 40);
    options.seed = 2;
    CHECK(plain != sampled(options));
    options.prompts = {"abé"};
    CHECK(sampled(options).starts_with("abé"));
    options.tokens = 0;
    CHECK(sampled(options) == "abé\n");
  }

  TEST_CASE("several texts stand below lines of their own, and do not depend on how many there are") {
    Run const run(letters);
    auto options = run.options();
    options.prompts = {"ab", "é"};
    options.count = 2;
    auto const four = sampled(options);
    for (char const* line : {"--- 1 of 4 ---\nab", "\n--- 2 of 4 ---\nab", "\n--- 3 of 4 ---\né", "\n--- 4 of 4 ---\né"})
      CHECK(four.find(line) != std::string::npos);
    options.prompts = {"ab"};
    options.count = 1;
    CHECK(four.starts_with("--- 1 of 4 ---\n" + sampled(options)));
  }

  TEST_CASE("in bfloat16, whatever the run was trained in: nearly the same scores, and the same text every time") {
    WithProducts const restored(products());
    Run const run(letters);
    auto options = run.options();
    auto const plain = sampled(options);
    options.precision = "float32";
    CHECK(sampled(options) == plain);
    options.precision = "bfloat16";
    auto const rounded = sampled(options);
    CHECK(products().bfloat16);
    CHECK(sampled(options) == rounded);
    options.sampling.temperature = 0;
    auto const likeliest = sampled(options);
    options.precision = "float32";
    CHECK(sampled(options).substr(0, 5) == likeliest.substr(0, 5));
    test::put(run.folder / "tiny/config.yaml",
              "name: tiny\ndtype: float64\ndata: {kind: text, path: gone.txt}\nmodel: {kind: gpt, layers: 1, "
              "heads: 2, width: 8, context: 16}\n");
    CHECK_THROWS_WITH_AS(sampled(options), "--precision: train.precision: float32 cannot be combined with dtype float64", ConfigError);
  }

  TEST_CASE("sentences are lines that begin with the prompt and end by themselves or with …") {
    for (auto const& tokenizer : {words, word_tokenizer({"a", "cat", "dog", "sees"})->json()}) {
      Run const run(tokenizer);
      auto options = run.options();
      options.tokens = std::nullopt;
      CHECK(lines_of(sampled(options)).size() == 10);
      options.prompts = {"a cat", "dog"};
      options.count = 3;
      auto const lines = lines_of(sampled(options));
      REQUIRE(lines.size() == 6);
      for (std::size_t i = 0; i < 6; ++i) CHECK(lines[i].starts_with(i < 3 ? "a cat" : "dog"));
      options.tokens = 0;
      for (auto const& line : lines_of(sampled(options))) CHECK(line.ends_with(" …"));
    }
  }

  TEST_CASE("a run is found by its folder, its checkpoint or its name") {
    Run const run(letters);
    auto options = run.options();
    auto const text = sampled(options);
    options.run = run.folder / "tiny/checkpoint.safetensors";
    CHECK(sampled(options) == text);
    options.run = "tiny";
    options.folders.output = run.folder.path();
    CHECK(sampled(options) == text);
    options.run = "tinny";
    CHECK_THROWS_WITH_AS(sampled(options), "tinny: there is no such run; did you mean 'tiny'?", ConfigError);
    options.run = run.folder / "tiny/config.yaml";
    CHECK_THROWS_WITH_AS(sampled(options), doctest::Contains("is neither a run's folder nor its checkpoint"), ConfigError);
    options.run = run.folder.path();
    CHECK_THROWS_AS(sampled(options), FileError);
  }

  TEST_CASE("what cannot be sampled is said") {
    Run const text(letters), sentences(words), tokens(""), broken(letters, std::numeric_limits<double>::quiet_NaN());
    auto options = text.options();
    options.prompts = {"abx"};
    CHECK_THROWS_WITH_AS(sampled(options), "--prompt: character 'x' (U+0078) is not in the vocabulary of 6 characters", ConfigError);
    options = sentences.options();
    options.prompts = {"a cta"};
    CHECK_THROWS_WITH_AS(sampled(options), doctest::Contains("'cta' is not one of the grammar's 4 words; did you mean 'cat'?"),
                         ConfigError);
    CHECK_THROWS_WITH_AS(sampled(tokens.options()), doctest::Contains("its data are tokens without a text"), ConfigError);
    CHECK_THROWS_WITH_AS(sampled(broken.options()), doctest::Contains("the weights are damaged"), FileError);
  }

  TEST_CASE("characters that arrive in pieces come out whole, and bytes that are none as U+FFFD") {
    std::string const text = "aé→𝄞z";
    for (std::size_t chunk = 1; chunk <= text.size(); ++chunk) {
      Utf8Writer writer;
      std::string shown;
      for (std::size_t i = 0; i < text.size(); i += chunk) {
        auto const piece = writer.push(text.substr(i, chunk));
        CHECK_NOTHROW(character_tokenizer(piece));
        shown += piece;
      }
      CHECK(shown + writer.finish() == text);
    }
    Utf8Writer writer;
    CHECK(writer.push("a\xE2\x86").append("|") == "a|");  // waits
    CHECK(writer.push("b") == "\uFFFD\uFFFDb");           // in vain
    CHECK(writer.push("\xF0\x9D") == "");
    CHECK(writer.finish() == "\uFFFD\uFFFD");
    CHECK(writer.push("\xFF\xC0") == "\uFFFD\uFFFD");  // can begin nothing
    CHECK(Utf8Writer(true).push("\x1B[2J\t\n") == "\uFFFD[2J\t\n");
    CHECK(Utf8Writer(false).push("\x1B") == "\x1B");
  }
}
