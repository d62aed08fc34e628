#include "experiments/metric/bleu.hpp"

#include "autograd/error.hpp"
#include "tests/test.hpp"

TEST_SUITE("bleu") {
  using namespace heed;
  using Tokens = BleuSettings::Tokens;
  using Smoothing = BleuSettings::Smoothing;

  namespace {

  using Sentences = std::vector<std::string>;

  doctest::Approx near(double value, double distance = 1e-6) { return doctest::Approx(value).epsilon(distance); }

  std::string joined(std::string_view sentence, BleuSettings const& settings = {}) {
    return fmt::format("{}", fmt::join(bleu_words(sentence, settings), " "));
  }

  }  // namespace

  TEST_CASE("sacrebleu's corpus of three sentences with two references: the values of its README and test/test_bleu.py") {
    Sentences const hypotheses{"The dog bit the man.", "It wasn't surprising.", "The man had just bitten him."};
    std::vector<Sentences> const references{{"The dog bit the man.", "The dog had bit the man."},
                                            {"It was not unexpected.", "No one was surprised."},
                                            {"The man bit him first.", "The man had bitten the dog."}};
    auto const score = [&](Sentences const& said, BleuSettings const& settings) {
      BleuCounts counts;
      for (std::size_t i = 0; i < said.size(); ++i) counts += bleu_counts(said[i], references[i], settings);
      return bleu(counts, settings);
    };
    CHECK(score(hypotheses, {}) == near(48.530827, 1e-8));
    CHECK(score(hypotheses, {.tokens = Tokens::words}) == near(49.1919566, 1e-8));
    CHECK(score(hypotheses, {.smoothing = Smoothing::none}) == near(48.530827, 1e-8));
    CHECK(score({"", "", ""}, {}) == 0);
  }

  TEST_CASE("sacrebleu's single sentences: the values of its test/test_sentence_bleu.py, to its 0.001") {
    std::string const reference = "producţia de zahăr brut se exprimă în zahăr alb;";
    std::string const hypothesis = "Producția de zahăr primă va fi exprimată în ceea ce privește zahărul alb;";
    auto const score = [&](BleuSettings settings) {
      settings.effective_order = true;
      return bleu(bleu_counts(hypothesis, {reference}, settings), settings);
    };
    CHECK(std::abs(score({}) - 8.493) < 1e-3);
    CHECK(score({.smoothing = Smoothing::none}) == 0);
    CHECK(std::abs(score({.smoothing = Smoothing::floor}) - 4.51688) < 1e-3);
    CHECK(std::abs(score({.smoothing = Smoothing::floor, .floor = 0.5}) - 10.10) < 1e-3);
    CHECK(std::abs(score({.tokens = Tokens::words}) - 7.347) < 1e-3);
    BleuSettings const whole{.effective_order = true};
    CHECK(bleu(bleu_counts("this is a cat", {"okay thanks"}, whole), whole) == 0);
  }

  TEST_CASE("sacrebleu's counts and scores of counts: the values of its test/test_bleu.py") {
    BleuSettings const floor{.tokens = Tokens::words, .smoothing = Smoothing::floor};
    auto const counts = bleu_counts("am I am a character sequence", {"I am a symbol string sequence a a"}, floor);
    // By hand: am, I, a and sequence; "I am" and "am a"; "I am a".
    CHECK(counts == BleuCounts{{4, 2, 1, 0}, {6, 5, 4, 3}, 6, 8});
    CHECK(bleu(counts, floor) == near(15.55722182));
    CHECK(bleu({{9, 7, 5, 3}, {10, 8, 6, 4}, 11, 11}, {.smoothing = Smoothing::none}) == near(83.75922397));
    CHECK(bleu({{6, 5, 4, 0}, {6, 5, 4, 3}, 6, 6}, {.smoothing = Smoothing::floor, .floor = 0}) == 0);
    CHECK(bleu({{0, 0, 0, 0}, {10, 11, 12, 0}, 14, 10}, floor) == 0);
    CHECK(bleu({}, {}) == 0);

    BleuSettings const effective{.tokens = Tokens::words, .smoothing = Smoothing::floor, .floor = 0.01, .effective_order = true};
    auto const score = [&](std::string const& said, std::string const& wanted) { return corpus_bleu({said}, {wanted}, effective); };
    CHECK(score("this is a test", "this is a test") == near(100));
    CHECK(score("this is a fest", "this is a test") == near(22.3606797749979));
    CHECK(score("test", "a test") == near(36.78794411714425));
    CHECK(score("a test", "a test") == near(100));
    CHECK(score("a little test", "a test") == near(3.218297948685433));
  }

  TEST_CASE("counts by hand: no n-gram counts more often than one reference has it, and the nearest length is the reference's") {
    BleuSettings const words{.tokens = Tokens::words};
    // Papineni et al. 2002, section 2.1: the modified unigram precision is 2/7.
    auto const the = bleu_counts("the the the the the the the", {"the cat is on the mat", "there is a cat on the mat"}, words);
    CHECK(the == BleuCounts{{2, 0, 0, 0}, {7, 6, 5, 4}, 7, 7});
    CHECK(bleu_counts("a b", {"a", "a b c"}, words).reference == 1);  // the shorter of two that are as near
    CHECK(bleu_counts("a b", {"a b c", "a"}, words).reference == 1);
    CHECK(bleu_counts("", {"a b"}, words) == BleuCounts{{0, 0, 0, 0}, {0, 0, 0, 0}, 0, 2});
    CHECK_THROWS_AS(bleu_counts("a", {}), Error);
    CHECK_THROWS_WITH_AS(corpus_bleu({"a", "b"}, {"a"}), "BLEU: 2 hypotheses, but 1 references", Error);
  }

  TEST_CASE("precisions, smoothing and brevity penalty by hand") {
    // Five words of which "a b c d" is right and four wanted: no penalty. (4/5 · 3/4 · 2/3 · 1/2)^(1/4).
    CHECK(corpus_bleu({"a b c d x"}, {"a b c d"}) == near(100 * std::pow(0.2, 0.25)));
    // All right, but 4 words of 6: exp(1 − 6/4).
    CHECK(corpus_bleu({"a b c d"}, {"a b c d e f"}) == near(100 * std::exp(-0.5)));
    // 2 of 4 words, 1 of 3 pairs, none of 2 triples (1/2 instead), none of one (1/4).
    CHECK(corpus_bleu({"a b x y"}, {"a b c d"}) == near(100 * std::pow(0.5 / 3 * 0.25 * 0.25, 0.25)));
    CHECK(corpus_bleu({"a b x y"}, {"a b c d"}, {.smoothing = Smoothing::none}) == 0);
    // No 4-gram in any hypothesis: 0, unless that order does not count.
    CHECK(corpus_bleu({"a b c"}, {"a b c"}) == 0);
    CHECK(corpus_bleu({"a b c"}, {"a b c"}, {.effective_order = true}) == near(100));
    // A corpus is the sum of its counts: 5 + 4 words, of which 4 + 4 are right …
    CHECK(corpus_bleu({"a b c d x", "a b c d"}, {"a b c d", "a b c d"}) == near(100 * std::pow(8. / 9 * 6 / 7 * 4 / 5 * 2 / 3, 0.25)));
  }

  TEST_CASE("13a's words: what the regular expressions of sacrebleu's tokenizer make, run in Python") {
    CHECK(joined("It costs $1,234.56, i.e. 10-12% (or more).") == "It costs $ 1,234.56 , i . e . 10 - 12 % ( or more ) .");
    CHECK(joined("Don't stop...now") == "Don't stop . . . now");
    CHECK(joined("&quot;R&amp;D&quot; &lt;b&gt;") == "\" R & D \" < b >");
    CHECK(joined("a,b.c ,d. 1,2. 3.") == "a , b . c , d . 1,2 . 3 .");
    CHECK(joined("1990-95, 5-\nfold <skipped>end") == "1990 - 95 , 5fold end");
    CHECK(joined("3.,4 ..5 .x. 7.") == "3 . , 4 . .5 . x . 7 .");
    CHECK(joined("naïve–dash, „Zitat“. Ärger.Übel") == "naïve–dash , „Zitat“ . Ärger . Übel");
    CHECK(joined("x_y [z]~{q}|^`@#a/b\\c") == "x _ y [ z ] ~ { q } | ^ ` @ # a / b \\ c");
    CHECK(joined("a-\n") == "a-");
    CHECK(joined("  ") == "");
    CHECK(joined("a\u00A0b\u3000c\u2028d", {.tokens = Tokens::words}) == "a b c d");  // as str.split() of Python does
    CHECK(joined("1, 2.", {.tokens = Tokens::words}) == "1, 2.");
  }

  TEST_CASE("small letters, as str.lower() of Python has them for Latin, Greek and Cyrillic") {
    BleuSettings const lower{.tokens = Tokens::words, .lowercase = true};
    CHECK(joined("ÄÖÜ ẞ ÉÑÇØÞ × ŁŻŚŹĆ ŸĞŞ ȘȚ ĀČĘŇŽ ƠƯẠỆ", lower) == "äöü ß éñçøþ × łżśźć ÿğş șț āčęňž ơưạệ");
    CHECK(joined("ΑΩΆΈΌΏ АЯЁЇҐ ß ı ŉ", lower) == "αωάέόώ аяёїґ ß ı ŉ");
    CHECK(corpus_bleu({"Der HUND läuft ÜBER"}, {"der Hund läuft über"}, {.lowercase = true}) == near(100));
    CHECK(corpus_bleu({"Der HUND läuft ÜBER"}, {"der Hund läuft über"}) < 50);
  }
}
