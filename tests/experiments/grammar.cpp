#include "experiments/data/grammar.hpp"

#include <fmt/ranges.h>

#include "experiments/data/files.hpp"
#include "experiments/data/open.hpp"
#include "experiments/metric/statistics.hpp"
#include "tests/difference.hpp"
#include "tests/json.hpp"
#include "tests/nn/choice.hpp"
#include "tests/refusal.hpp"

using namespace heed;

namespace {

constexpr Index any_length = std::numeric_limits<Index>::max();

Grammar grammar(std::string const& text) { return Grammar::read(text, "g.yaml"); }

Grammar const& english() {
  static auto const result = Grammar::read(read_text(shipped("english.yaml")), "english.yaml");
  return result;
}

// Balanced brackets of two kinds: a S-list with a geometric number of members, unambiguous.
std::string const brackets = R"(
start: List
rules:
  List: {Item: 3, Item List: 1}
  Item: {x: 2, ( List ): 1, "[ List ]": 1}
)";

std::vector<std::int32_t> words_of(Grammar const& g, std::string const& text) {
  std::vector<std::int32_t> sentence;
  for (auto const& word : test::split_words(text))
    sentence.push_back(static_cast<std::int32_t>(std::ranges::lower_bound(g.words(), word) - g.words().begin()));
  return sentence;
}

std::unique_ptr<Dataset> dataset(test::Keys const& keys = {}, std::uint64_t seed = 1, std::filesystem::path const& folder = {}) {
  return open_dataset(test::chosen(choice_of<DataKind>(), "grammar", keys), {folder, folder, seed, true});
}

std::vector<Index> values(Tensor const& tensor) {
  auto const data = tensor.data<std::int64_t>();
  return {data.begin(), data.end()};
}

/// The mean over targets of −log P(sentence), given that none is longer; how many targets there are.
struct LeastLoss {
  double nats, tokens;
};
LeastLoss least_loss(std::vector<Index> const& targets, Index longest) {
  double const log_short = std::log(english().up_to(longest).probability);
  double nats = 0, tokens = 0;
  std::vector<std::int32_t> sentence;
  for (auto const target : targets) {
    if (target >= 0) ++tokens;
    if (target > 0) sentence.push_back(static_cast<std::int32_t>(target - 1));
    if (target != 0) continue;
    nats -= english().log_probability(sentence) - log_short;
    sentence.clear();
  }
  CHECK(sentence.empty());
  return {nats / tokens, tokens};
}

}  // namespace

TEST_SUITE("grammar") {
  TEST_CASE("a derivation's probability is the sentence's, and it is the only one") {
    auto const small = grammar(brackets);
    for (auto const* g : {&small, &english()})
      for (std::uint64_t i = 0; i < 1000; ++i) {
        auto const sentence = g->sample(Stream(11, "test").child(i), 60);
        CHECK(g->log_probability(sentence.words) == doctest::Approx(sentence.log_probability).epsilon(1e-11));
        CHECK(g->derivations(sentence.words) == 1);
      }
  }

  TEST_CASE("very long sentences neither overflow nor underflow") {
    auto const g = grammar("start: S\nrules:\n  S: {a S: 999, a: 1}\n");
    CHECK(g.expected_length() == doctest::Approx(1000));
    CHECK(g.log_probability(std::vector<std::int32_t>(300, 0)) == doctest::Approx(299 * std::log(0.999) + std::log(0.001)));
    auto const wide = grammar("start: S\nrules:\n  S: {W S: 99, W: 1}\n  W: [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p]\n");
    CHECK(wide.log_probability(std::vector<std::int32_t>(400, 3)) ==
          doctest::Approx(399 * std::log(0.99) + std::log(0.01) - 400 * std::log(16)));
  }

  TEST_CASE("sentences come as often as they are probable") {
    auto const g = grammar(brackets);
    std::map<std::vector<std::int32_t>, int> seen;
    constexpr int samples = 20'000;
    for (std::uint64_t i = 0; i < samples; ++i) ++seen[g.sample(Stream(5, "test").child(i), any_length).words];
    int compared = 0;
    for (auto const& [words, times] : seen) {
      double const p = std::exp(g.log_probability(words));
      if (p * samples < 20) continue;
      ++compared;
      CHECK(std::abs(times - p * samples) < 5 * std::sqrt(p * (1 - p) * samples));
    }
    CHECK(compared > 15);
  }

  TEST_CASE("probabilities of all strings sum to the probability of their length") {
    auto const g = grammar(brackets);
    double total = 0, surprise = 0, length_sum = 0;
    std::vector<std::vector<std::int32_t>> strings(1);  // all of a length, at first 0
    for (std::size_t length = 1; length <= 6; ++length) {
      for (auto const& shorter : std::exchange(strings, {}))
        for (std::size_t word = 0; word < g.words().size(); ++word) {
          strings.push_back(shorter);
          strings.back().push_back(static_cast<std::int32_t>(word));
        }
      for (auto const& string : strings) {
        double const log_p = g.log_probability(string);
        CHECK((log_p == -std::numeric_limits<double>::infinity()) == (g.derivations(string) == 0));
        if (std::isinf(log_p)) continue;
        total += std::exp(log_p);
        surprise -= std::exp(log_p) * log_p;
        length_sum += std::exp(log_p) * static_cast<double>(length);
      }
      auto const up_to = g.up_to(static_cast<Index>(length));
      CHECK(up_to.probability == doctest::Approx(total).epsilon(1e-12));
      CHECK(up_to.expected_length == doctest::Approx(length_sum / total).epsilon(1e-12));
      CHECK(up_to.entropy == doctest::Approx(surprise / total + std::log(total)).epsilon(1e-12));
    }
    CHECK(g.log_probability(words_of(g, "( x [ x ] )")) == doctest::Approx(std::log(0.75 * 0.25 * 0.25 * 0.5 * 0.75 * 0.25 * 0.75 * 0.5)));
    CHECK(std::isinf(g.log_probability(words_of(g, "( x ]"))));
    CHECK(std::isinf(g.log_probability({})));
    CHECK(g.up_to(0).probability == 0);
  }

  TEST_CASE("the recursion over lengths tends to the expectation equations") {
    for (auto const& g : {grammar(brackets), english()}) {
      auto const all = g.up_to(400);
      CHECK(all.probability == doctest::Approx(1).epsilon(1e-9));
      CHECK(all.entropy == doctest::Approx(g.entropy()).epsilon(1e-6));
      CHECK(all.expected_length == doctest::Approx(g.expected_length()).epsilon(1e-6));
    }
  }

  TEST_CASE("entropy is the mean of −log P, given that sentences are short or not") {
    for (Index longest : {any_length, Index{31}, Index{12}}) {
      constexpr int samples = 20'000;
      std::vector<double> surprises;
      double lengths = 0;
      auto const up_to = english().up_to(std::min<Index>(longest, 200));
      for (std::uint64_t i = 0; i < samples; ++i) {
        auto const sentence = english().sample(Stream(3, "test").child(i), longest);
        CHECK(static_cast<Index>(sentence.words.size()) <= longest);
        surprises.push_back(-sentence.log_probability + std::log(up_to.probability));
        lengths += static_cast<double>(sentence.words.size());
      }
      auto const found = describe(surprises);
      CHECK(std::abs(found.mean - up_to.entropy) < 4 * found.deviation / std::sqrt(samples));
      CHECK(lengths / samples == doctest::Approx(up_to.expected_length).epsilon(0.02));
    }
  }

  TEST_CASE("features agree, and one that is only on the right is summed over") {
    auto const g = grammar(R"(
start: S
features: {number: [one, many], class: [cat, dog]}
rules:
  S: N[number,class] V[number]
  N[one,class]: a C[class]
  N[many,class]: the C[class] s
  C[cat]: cat
  C[dog]: dog
  V[one]: [sleeps]
  V[many]: {sleep: 1.5, doze: .5}
)");
    CHECK(g.words() == std::vector<std::string>{"a", "cat", "dog", "doze", "s", "sleep", "sleeps", "the"});
    auto const p = [&](std::string const& text) { return std::exp(g.log_probability(words_of(g, text))); };
    CHECK(p("a cat sleeps") == doctest::Approx(0.25));
    CHECK(p("a cat sleep") == 0);
    CHECK(p("the dog s sleep") == doctest::Approx(0.25 * 0.75));
    CHECK(p("the dog s doze") == doctest::Approx(0.25 * 0.25));
    CHECK(g.expected_length() == doctest::Approx(3.5));
    CHECK(g.entropy() == doctest::Approx(std::log(4) + 0.5 * -(0.75 * std::log(0.75) + 0.25 * std::log(0.25))));
  }

  TEST_CASE_FIXTURE(test::InFolder, "ambiguity is counted, summed over, and refused as data") {
    std::string const text = "start: S\nrules:\n  S: {S S: 1, a: 2}\n";
    auto const g = grammar(text);
    CHECK(g.derivations(std::vector<std::int32_t>(5, 0)) == 14);  // Catalan
    CHECK(g.log_probability(std::vector<std::int32_t>(3, 0)) == doctest::Approx(std::log(2 * 8.0 / 243)));
    test::put(folder / "g.yaml", text);
    CHECK_THROWS_WITH_AS(dataset({{"path", "g.yaml"}}, 1, folder.path()),
                         doctest::Contains("g.yaml: the grammar is ambiguous, so its entropy is not known: 'a a a"), FileError);
  }

  TEST_CASE("malformed grammars are refused with file, line and column") {
    std::string const head = "start: S\nfeatures: {n: [one, many]}\nrules:\n  S: A[n]\n  A[one]: a\n";
    CHECK(grammar(head + "  A[many]: b\n").words().size() == 2);
    std::vector<test::Wrong> cases = {
        {"", "g.yaml:1:1: the grammar must be keys with values, not nothing"},
        {"- S", "g.yaml:1:1: the grammar must be keys with values, not a list"},
        {"start: S\nrules: {S: [a", "g.yaml:"},
        {"start: S\n\trules: 3", "g.yaml:2:1: a tab in the indentation"},
        {"start: S\nrules:\n  S: \xc3(", "g.yaml:3:6: byte 0xc3 is not UTF-8"},
        {"start: S", "g.yaml:1:1: 'rules' is missing"},
        {"rules: {S: a}", "g.yaml:1:1: 'start' is missing"},
        {"start: S\nrules: {S: a}\nrule: 3", "g.yaml:3:1: unknown key 'rule' in the grammar; did you mean 'rules'?"},
        {"start: S\nrules: {S: a}\nstart: S", "g.yaml:3:1: duplicate key 'start'"},
        {"start: [S]\nrules: {S: a}", "g.yaml:1:8: start must be a string, not a list"},
        {"start: s\nrules: {S: a}", "g.yaml:1:8: start: 's' is a word"},
        {"start: Sentenze\nrules: {Sentence: a}", "g.yaml:1:8: 'Sentenze' has no rules; did you mean 'Sentence'?"},
        {"start: S\nrules: [a]", "g.yaml:2:8: rules must be keys with values"},
        {"start: S\nrules:\n  S: A\n  a: b", "g.yaml:4:3: 'a' cannot have rules"},
        {"start: S\nrules:\n  S: {}", "g.yaml:3:6: S must be keys with values"},
        {"start: S\nrules:\n  S: []", "g.yaml:3:6: S must be keys with values"},
        {"start: S\nrules:\n  S:", "g.yaml:3:"},
        {"start: S\nrules:\n  S: ''", "g.yaml:3:6: S has an empty alternative"},
        {"start: S\nrules:\n  S: [a, [b]]", "g.yaml:3:10: an alternative must be a string, not a list"},
        {"start: S\nrules:\n  S: {a: 1, a: 2}", "g.yaml:3:13: duplicate key"},
        {"start: S\nrules:\n  S: [a, b, a]", "g.yaml:3:13: S has the alternative 'a' twice"},
        {"start: S\nrules:\n  S: {a: 1, a Verb: 2}\n  Vreb: b", "g.yaml:3:13: 'Verb' has no rules; did you mean 'Vreb'?"},
        {"start: S\nrules:\n  S: a\n  T: b", "g.yaml:4:3: T is never used: S does not lead to it"},
        {"start: S\nrules:\n  S: {a: 1, T: 1}\n  T: b T", "g.yaml:4:3: T never ends"},
        {"start: S\nrules:\n  S: {a: 1, T: 1}\n  T: {S: 1, b: 1}",
         "derives itself, so that every sentence with it has infinitely many derivations"},
        {"start: S\nrules:\n  S: {S S: 1, a: 1}", "g.yaml:3:3: S has no finite expected length"},
        {"start: S\nrules:\n  S: {S S S: 2, a: 3}", "g.yaml:3:3: S has no finite expected length"},
        {head + "  A[many]: b\n  A[one]: c\n", "duplicate key 'rules.A[one]'"},
        {head + "  A[n]: c\n", "g.yaml:6:3: A[one] is defined twice"},
        {head, "g.yaml:4:6: 'A[many]' has no rules"},
        {head + "  A[meny]: c\n", "g.yaml:6:3: 'meny' in A[meny] is neither a feature nor a value of one; did you mean 'many'?"},
        {head + "  A[many: c\n", "g.yaml:6:3: 'A[many' has no closing bracket"},
        {head + "  A[]: c\n", "g.yaml:6:3: 'A[]' has no features"},
        {head + "  A[many]: {A[n: 1}\n", "g.yaml:"},
        {"start: S\nfeatures: {n: one}\nrules: {S: a}", "g.yaml:2:15: a feature needs a list of values"},
        {"start: S\nfeatures: {n: [a, b], m: [b]}\nrules: {S: a}", "g.yaml:2:27: 'b' is a value already"},
        {"start: S\nfeatures: {n: [a, m], m: [b]}\nrules: {S: a}", "g.yaml:2:23: 'm' is both a feature and a value"},
        {"start: S\nfeatures: 3\nrules: {S: a}", "g.yaml:2:11: features must be keys with values"},
    };
    for (std::string const weight : {"0", "-1", ".nan", "1e300", "much", "[1]"})
      cases.push_back({"start: S\nrules:\n  S: {a: " + weight + "}", "g.yaml:3:10: a weight must be a number"});
    test::check_refusals<FileError>(grammar, cases);
  }

  TEST_CASE("features that multiply without end are refused") {
    std::vector<std::string> names, features;  // six of thirty values each
    for (int f = 0; f < 6; ++f) {
      std::vector<std::string> values;
      for (int i = 0; i < 30; ++i) values.push_back(fmt::format("value{}_{}", f, i));
      names.push_back(fmt::format("feature{}", f));
      features.push_back(fmt::format("{}: [{}]", names.back(), fmt::join(values, ", ")));
    }
    CHECK_THROWS_WITH_AS(
        grammar(fmt::format("start: S\nfeatures: {{{}}}\nrules:\n  S: a\n  T[{}]: b\n", fmt::join(features, ", "), fmt::join(names, ","))),
        doctest::Contains("g.yaml:5:3: its features make more than"), FileError);
  }

  TEST_CASE("a row is one whole sentence, its loss −log P") {
    auto const data = dataset();
    CHECK(data->vocabulary() == static_cast<Index>(english().words().size()) + 1);
    auto const batch = data->training(0, 64, 40);
    auto const inputs = values(batch["inputs"]), targets = values(batch["next"]);
    for (std::size_t row = 0; row < 64; ++row) {
      auto const* x = &inputs[row * 40];
      auto const* y = &targets[row * 40];
      std::vector<std::int32_t> sentence;
      std::size_t i = 0;
      CHECK(x[0] == 0);
      for (; y[i] > 0; ++i) {
        CHECK(x[i + 1] == y[i]);
        sentence.push_back(static_cast<std::int32_t>(y[i] - 1));
      }
      CHECK((y[i] == 0 && i <= 31));
      while (++i < 40) CHECK((y[i] == -1 && x[i] == 0));
      CHECK(english().derivations(sentence) == 1);
    }
  }

  TEST_CASE("a training batch is a function of seed and number, the held-out sentences of neither") {
    test::Keys const settings{{"validation", 50}};
    auto const data = dataset(settings, 1), other = dataset(settings, 2);
    auto const whole = data->training(0, 12, 32);
    CHECK(test::same_bits(whole["inputs"], dataset(settings, 1)->training(0, 12, 32)["inputs"]));
    CHECK(!test::same_bits(whole["inputs"], other->training(0, 12, 32)["inputs"]));
    CHECK(test::same_bits(data->training(2, 4, 32)["next"], whole["next"].rows(8, 4)));
    CHECK(data->validation_batches(16, 32) == 4);
    std::vector<Index> by_sixteen, by_fifty = values(other->validation(0, 50, 32)["next"]);
    for (Index index = 0; index < 4; ++index)
      for (auto target : values(data->validation(index, 16, 32)["next"])) by_sixteen.push_back(target);
    CHECK(by_sixteen == by_fifty);
    CHECK_THROWS_AS(data->validation(4, 16, 32), Error);
    CHECK_THROWS_WITH_AS(data->training(0, 1, 31), doctest::Contains("model.context: 31 is too short for sentences of up to 31 words"),
                         Error);
  }

  TEST_CASE("packed rows: sentence after sentence; training cuts the last off, held-out ones stay whole") {
    auto const data = dataset({{"validation", 60}, {"pack", true}});
    auto const batch = data->training(3, 5, 70);
    auto const inputs = values(batch["inputs"]), targets = values(batch["next"]);
    for (std::size_t row = 0; row < 5; ++row) {
      CHECK(inputs[row * 70] == 0);
      for (std::size_t i = row * 70; i + 1 < (row + 1) * 70; ++i) CHECK(inputs[i + 1] == targets[i]);
      // The first sentence of a row is drawn from the first child of the row's stream, and so on.
      auto const draws = Stream(1, "data").child(15 + row);
      std::vector<Index> expected;
      for (std::uint64_t s = 0; expected.size() < 70; ++s) {
        for (auto word : english().sample(draws.child(s), 31).words) expected.push_back(word + 1);
        expected.push_back(0);
      }
      CHECK(std::equal(expected.begin(), expected.begin() + 70, targets.begin() + static_cast<std::ptrdiff_t>(row * 70)));
    }

    std::vector<std::pair<Index, Index>> one_a_row, packed;  // targets with their groups
    auto const append = [](auto& list, Batch const& part) {
      auto const tokens = values(part["next"]), groups = values(part["groups"]);
      for (std::size_t i = 0; i < tokens.size(); ++i)
        if (tokens[i] >= 0) list.emplace_back(tokens[i], groups[i]);
    };
    append(one_a_row, dataset({{"validation", 60}})->validation(0, 60, 70));
    auto const batches = data->validation_batches(4, 70);
    CHECK(batches * 4 < 60 / 2);
    for (Index i = 0; i < batches; ++i) {
      auto const part = data->validation(i, 4, 70);
      append(packed, part);
      CHECK(values(part["inputs"])[0] == 0);
    }
    CHECK(packed == one_a_row);
    CHECK_THROWS_AS(data->validation(batches, 4, 70), Error);

    // The least loss of the first rows is that of the sentences in them.
    auto const first = least_loss(values(data->validation(0, 2, 70)["next"]), 31);
    CHECK(data->facts().optimum(2, 70) == doctest::Approx(first.nats).epsilon(1e-10));
    CHECK(data->facts().optimum(1000, 70) == doctest::Approx(data->describe()["exact"].get<double>()).epsilon(1e-12));
  }

  TEST_CASE("the exact loss is that of the held-out rows") {
    auto const data = dataset({{"validation", 300}, {"longest", 15}, {"ngram_sentences", 1000}});
    auto const least = least_loss(values(data->validation(0, 300, 16)["next"]), 15);
    auto const described = data->describe();
    CHECK(described["exact"].get<double>() == doctest::Approx(least.nats).epsilon(1e-10));
    CHECK(described["tokens"]["validation"].get<double>() == least.tokens);
    auto const file = shipped("english.yaml").string();
    CHECK_THROWS_WITH_AS(dataset({{"longest", 2}}),
                         (file + ": only 0 % of its sentences have at most 2 words (data.longest); the shortest has 4").c_str(), FileError);
  }

  TEST_CASE("who agrees with whom, and how far away") {
    auto const g = grammar(R"(
start: S
features: {number: [one, many]}
agreement: {feature: number, from: Noun, to: [Verb, Has]}
rules:
  S: {"NP[number] Verb[number]": 1, "do NP[number] Verb[many]": 1}
  NP[number]: {"the Noun[number]": 3, "the Noun[number] that NP[number] Has[number]": 1}
  Noun[one]: cat
  Noun[many]: cats
  Verb[one]: [sleeps, "sits there"]
  Verb[many]: [sleep, "sit there"]
  Has[one]: has
  Has[many]: has
)");
    CHECK(g.words() == std::vector<std::string>{"cat", "cats", "do", "has", "sit", "sits", "sleep", "sleeps", "that", "the", "there"});
    CHECK(g.agreement_values() == std::vector<Index>{-1, -1, -1, -1, 1, 0, 1, 0, -1, -1, -1});
    std::size_t nested = 0;
    for (std::uint64_t i = 0; i < 300; ++i) {
      auto const sentence = g.sample(Stream(1, "agreement").child(i), 40);
      auto const word = [&](std::size_t position) { return at(g.words(), sentence.words[position]); };
      // "the cat that the cat that … has has sleeps": the k-th noun from the left goes with the k-th verb from the right.
      std::vector<std::size_t> nouns, verbs;
      for (std::size_t position = 0; position < sentence.words.size(); ++position) {
        if (word(position).starts_with("cat")) nouns.push_back(position);
        if (word(position) == "has" || word(position).starts_with("s")) verbs.push_back(position);
      }
      REQUIRE(nouns.size() == verbs.size());
      bool const asks = word(0) == "do";  // the last verb is a plural whoever it is
      REQUIRE(sentence.agreements.size() == verbs.size() - (asks ? 1 : 0));
      nested += sentence.agreements.size() > 1 ? 1 : 0;
      for (std::size_t k = 0; k < sentence.agreements.size(); ++k) {
        CHECK(sentence.agreements[k].to == verbs[k]);
        CHECK(sentence.agreements[k].from == nouns[nouns.size() - 1 - k]);
      }
    }
    CHECK(nested > 20);
  }

  TEST_CASE("agreement that cannot be understood") {
    std::string const rules = "\nrules:\n  S: A[n]\n  A[one]: a\n  A[two]: b\n", features = "start: S\nfeatures: {n: [one, two]}\n";
    CHECK_NOTHROW(grammar(features + "agreement: {feature: n, from: A, to: A}" + rules));
    auto const read = [&](std::string const& agreement) { grammar(features + agreement + rules); };
    test::check_refusals<FileError>(read, {{"agreement: {feature: m, from: A, to: A}", "g.yaml:3:22: 'm' is not a feature"},
                                           {"agreement: {feature: n, from: B, to: A}", "g.yaml:3:31: 'B' has no rules"},
                                           {"agreement: {feature: n, from: A}", "agreement: 'to' is missing"},
                                           {"agreement: {feature: n, from: A, two: A}", "unknown key 'two' in agreement"}});
  }

  TEST_CASE("verbs of held-out sentences are grouped by their distance, and told apart by number") {
    auto const data = dataset();
    auto const groups = data->facts().groups;
    CHECK(groups.names.front() == "agreement.distance1");
    CHECK(groups.names.back() == "agreement.distance17+");
    REQUIRE(groups.categories.size() == static_cast<std::size_t>(data->vocabulary()));
    for (auto const& value : std::map<std::string, Index>{{"sings", 0}, {"sing", 1}, {"king", -1}, {"do", -1}}) {
      CAPTURE(value.first);
      CHECK(at(groups.categories, data->facts().tokenizer->encode(value.first).back()) == value.second);
    }
    auto const batch = data->validation(0, 200, 32);
    auto const of = values(batch["groups"]), targets = values(batch["next"]);
    std::vector<int> found(groups.names.size());
    for (std::size_t i = 0; i < of.size(); ++i) {
      if (of[i] < 0) continue;
      ++at(found, of[i]);
      CHECK(at(groups.categories, targets[i]) >= 0);
    }
    for (int const count : found) CHECK(count > 0);
    CHECK(!data->training(0, 2, 32).has("groups"));
  }

  TEST_CASE("sentences to tokens and back") {
    auto const data = dataset();
    auto const tokenizer = data->facts().tokenizer;
    std::string const text = "the old king sings .\ndo the dogs near a tree howl ?";
    auto const tokens = tokenizer->encode(text);
    CHECK(tokens.front() == 0);
    CHECK(tokenizer->decode({tokens.begin(), tokens.end()}) == text);
    CHECK(tokenizer->encode("") == std::vector<std::int32_t>{0});
    CHECK_THROWS_WITH_AS(tokenizer->encode("the kinq sings"), doctest::Contains("'kinq' is not one of the grammar's"), Error);
    CHECK_THROWS_AS(tokenizer->decode({data->vocabulary()}), Error);
  }

  TEST_CASE("the best n-gram stays well above the entropy, and knows nothing that is not there") {
    auto const losses = dataset()->reference_losses(1, 64);
    REQUIRE(losses.size() == 8);
    CHECK((losses[6].first == "exact" && losses[7].first == "entropy"));
    CHECK(std::abs(losses[6].second - losses[7].second) < 0.02);
    for (std::size_t order = 0; order < 6; ++order) CHECK(losses[order].second > losses[6].second + 0.15);
  }

  TEST_CASE_FIXTURE(test::InFolder, "the grammar in a file of one's own") {
    test::put(folder / "mine.yaml", brackets);
    auto const vocabulary = [&](test::Keys const& keys) { return dataset(keys, 1, folder.path())->vocabulary(); };
    CHECK(vocabulary({{"validation", 10}}) == dataset()->vocabulary());
    CHECK(vocabulary({{"validation", 10}, {"path", "mine.yaml"}}) == 6);
    CHECK_THROWS_WITH_AS(vocabulary({{"validation", 10}, {"path", "missing.yaml"}}), doctest::Contains("missing.yaml: no such file"),
                         FileError);
  }
}
