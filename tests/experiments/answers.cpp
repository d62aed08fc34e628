// How answers are compared: as SQuAD's evaluation script does.

#include "experiments/data/examples/example.hpp"
#include "tests/test.hpp"

TEST_SUITE("answers") {
  using namespace heed;

  // What the script's normalize_answer gives in Python 3.
  TEST_CASE("lower case, no ASCII punctuation, no articles, one blank between words") {
    for (auto const& each : std::vector<std::pair<std::string, std::string>>{
             {"", ""},
             {"The Normans", "normans"},
             {"  an  Apple\ta day\n", "apple day"},
             {"U.S.A.", "usa"},
             {"A-Team's", "ateams"},
             {"$1,000", "1000"},
             {"x_a_y", "xay"},
             {"a", ""},
             {"another than", "another than"},
             {"a.b the.c", "ab thec"},
             {"The “A” –", "“ ” –"},
             {"the–war", "–war"},
             {"An É the a", "é"},
             {"Théâtre a", "théâtre"},
             {"a\u00a0b the\u2003x", "b x"},
             {"the² a²", "the² a²"},
             {"Ⅻ a", "ⅻ"},
             {"a\u0301b", "\u0301b"},
             {"İ", "i\u0307"},
             {"ẞ ÀÉ Ж", "ß àé ж"},
             {"ΟΔΟΣ", "οδος"},
             {"ΟΔΟΣ ΣΙΣΥΦΟΣ.", "οδος σισυφος"},
             {"ΟΔΟΣ's 'ΑΣ' 1Σ Σ Σ'", "οδοσs ας 1σ σ σ"},
             {"ΑΣ\u0301 ΑΣ\u0301Α ΑΣ.Α Α\u0301Σ Α Σ ΑΣ1 ΑΣ中 ΑΣ-Α", "ας\u0301 ασ\u0301α ασα α\u0301ς α σ ας1 ας中 αςα"},
         }) {
      CAPTURE(each.first);
      CHECK(normalised_answer(each.first) == each.second);
    }
    CHECK(normalised_answer("\xff") == "\ufffd");
  }

  // The script's compute_exact and compute_f1.
  TEST_CASE("exact match and F1 of words, repetitions counted") {
    struct Case {
      std::string given, right;
      double exact, f1;
    };
    for (Case const& each : std::vector<Case>{{"the Normans", "Normans", 1, 1},
                                              {"in the 10th and 11th centuries", "10th and 11th centuries", 0, 0.888888888888889},
                                              {"a b b c", "b c c", 0, 2.0 / 3},
                                              {"x", "y", 0, 0},
                                              {"cat the cat", "cat", 0, 2.0 / 3},
                                              {"$1,000", "1000", 1, 1},
                                              {"the", "x", 0, 0},
                                              {"", "the", 1, 1},
                                              {"the", "a", 1, 1}}) {
      CAPTURE(each.given);
      auto const scores = answer_scores(each.given, std::string_view(each.right));
      CHECK(scores.exact == each.exact);
      CHECK(scores.f1 == doctest::Approx(each.f1).epsilon(1e-12));
      CHECK(answer_scores(each.right, std::string_view(each.given)).f1 == scores.f1);
    }
  }

  TEST_CASE("several right answers: the best of each score; none: only nothing is right") {
    auto const scores = answer_scores("old cat", std::vector<std::string>{"the very old cat", "dog", "cat"});
    CHECK(scores.exact == 0);
    CHECK(scores.f1 == doctest::Approx(0.8));
    CHECK(answer_scores("Cat!", std::vector<std::string>{"dog", "the cat"}).exact == 1);
    CHECK(answer_scores("", std::vector<std::string>{}).exact == 1);
    CHECK(answer_scores("", std::vector<std::string>{}).f1 == 1);
    CHECK(answer_scores("cat", std::vector<std::string>{}).f1 == 0);
    CHECK(answer_scores("", std::vector<std::string>{"cat"}).exact == 0);
    CHECK(answer_scores("the", std::vector<std::string>{"a", "cat"}).exact == 0);
    CHECK(answer_scores("the", std::vector<std::string>{"a"}).exact == 1);
  }
}
