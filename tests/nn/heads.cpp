// Heads for labelled examples, on every model of text.

#include "autograd/ops/shape.hpp"
#include "nn/decode.hpp"
#include "nn/heads/task_head.hpp"
#include "tests/nn/choice.hpp"
#include "tests/nn/models.hpp"
#include "tests/refusal.hpp"

TEST_SUITE("heads") {
  using namespace heed;
  using namespace heed::test;

  namespace {

  constexpr Index vocabulary = 9, rows = 3, length = 6;

  /// What every head can read, of `sequences` a row.
  Batch some_batch(Index sequences) {
    Shape const shape = sequences > 1 ? Shape{rows, sequences, length} : Shape{rows, length};
    auto const ends = sequences > 1 ? std::vector<Index>{6, 4, 5, 6, 3, 6} : std::vector<Index>{6, 4, 5};
    Tensor const lengths = Tensor::of(ends, sequences > 1 ? Shape{rows, sequences} : Shape{rows});
    auto const answered = mapped(ends, [](Index end) { return end - 1; });
    Tensor const targets = changed_behind(random_tokens(shape, vocabulary, "targets"), answered, vocabulary, true);
    Batch batch{{"inputs", random_tokens(shape, vocabulary, "inputs")}, {"lengths", lengths},
                {"segments", random_tokens(shape, 2, "segments")},      {"targets", targets},
                {"label", random_tokens({rows}, 2, "label")},           {"next_sentence", random_tokens({rows}, 2, "next_sentence")}};
    if (sequences == 1) {
      batch.set("passage", Tensor::of(std::vector<Index>{2, 0, 1, 1, 1, 0, 2, 0, 1, 1, 0, 0, 2, 0, 1, 1, 1, 0}, {rows, length}));
      batch.set("span", Tensor::of(std::vector<Index>{2, 4, 0, 0, 3, 3}, {rows, 2}));
    }
    return batch;
  }

  Signature signature(Index sequences, bool segments, bool options) {
    Signature data = Signature::tokens(vocabulary);
    data.set({.name = "inputs", .classes = vocabulary, .sequences = sequences});
    data.set({.name = "label", .classes = 2, .vocabulary = options ? option_labels : "classes"});
    if (segments) data.set({.name = "segments", .classes = 2});
    return data;
  }

  /// A kind of head with its settings, and the sequences of a row that it is shown.
  struct Case {
    std::string name, kind;
    Index sequences = 1;
    std::function<void(HeadSettings&)> change = {};
  };

  TaskHeadSettings& task(HeadSettings& settings) { return dynamic_cast<TaskHeadSettings&>(settings); }

  std::vector<Case> cases(SeesText sees) {
    std::vector<Case> all{
        {"classification", "classification"},
        {"both orders", "classification", 2},
        {"mean of places", "classification", 1, [](HeadSettings& s) { task(s).pool = "mean"; }},
        {"weighted layers", "classification", 1, [](HeadSettings& s) { task(s).features = "weighted"; }},
        {"choice", "choice", 2},
        {"span", "span"},
    };
    if (!Registry<RecurrentFeatures>::all().empty()) {
      all.push_back(
          {"embeddings and an LSTM", "classification", 1, [](HeadSettings& s) { task(s).features = "embeddings", task(s).recurrent = 3; }});
      all.push_back({"mean of an LSTM", "classification", 1, [](HeadSettings& s) { task(s).recurrent = 3, task(s).pool = "mean"; }});
      all.push_back({"span of an LSTM", "span", 1, [](HeadSettings& s) { task(s).recurrent = 2; }});
    }
    auto const auxiliary = [](HeadSettings& s) { task(s).auxiliary = 0.5; };
    if (sees == SeesText::past) {
      all.push_back({"classification beside the language model", "classification", 1, auxiliary});
      all.push_back({"choice beside the language model", "choice", 2, auxiliary});
      all.push_back({"likelihood", "likelihood", 2});
      all.push_back({"bottleneck", "bottleneck"});
    } else {
      all.push_back({"next sentence", "next_sentence"});
    }
    return all;
  }

  std::unique_ptr<Model> made(std::string const& kind, Case const& each, Signature const& data, Parameters& parameters) {
    Choice head = chosen(head_choice(kind == "bert" ? SeesText::all : SeesText::past), each.kind);
    if (each.change) each.change(dynamic_cast<HeadSettings&>(*head.settings));
    Keys keys{{"width", 8}, {"context", length}};
    if (kind != "bag_of_words") keys.emplace_back("layers", 2);
    if (kind == "gpt" || kind == "bert") keys.emplace_back("heads", 2);
    Choice const model = chosen(model_choice(), kind, keys);
    for (auto const& field : model.settings->fields())
      if (field.name == "head") *std::get<Choice*>(field.target) = head;
    return model_kind(kind).make(parameters, *model.settings, data);
  }
  std::unique_ptr<Model> made(std::string const& kind, Case const& each, Parameters& parameters) {
    bool const segments = kind == "bert" || kind == "bag_of_words";
    return made(kind, each, signature(each.sequences, segments, each.kind == "choice" || each.kind == "likelihood"), parameters);
  }

  /// With parameters that the model alone keeps.
  std::unique_ptr<Model> made(std::string const& kind, Case const& each) {
    Parameters parameters(3, DType::float64, wide(0.4));
    return made(kind, each, parameters);
  }

  /// The kinds of models that have heads.
  std::vector<std::string> kinds() {
    std::vector<std::string> all{"gpt", "bert"};
    if (Registry<ModelKind>::find("recurrent_lm") != nullptr) all.emplace_back("recurrent_lm");
    return all;
  }

  /// And the bag of words, which has no other heads.
  std::vector<std::pair<std::string, Case>> all_models() {
    std::vector<std::pair<std::string, Case>> all{{"bag_of_words", {"classes", "classification"}},
                                                  {"bag_of_words", {"options", "choice", 2}}};
    for (auto const& kind : kinds())
      for (Case const& each : cases(kind == "bert" ? SeesText::all : SeesText::past)) all.emplace_back(kind, each);
    return all;
  }

  }  // namespace

  TEST_CASE("first and second derivatives of the loss, of every head on every model") {
    for (auto const& model : all_models()) {
      INFO("model.first ", model.first, ", model.second.name ", model.second.name);
      Parameters start(3, DType::float64, wide(0.4));
      made(model.first, model.second, start);
      auto const values = values_of(start);
      Batch const batch = some_batch(model.second.sequences);
      auto const loss = [&](Tensors const& at) {
        Parameters parameters = with_values(start, at);
        return made(model.first, model.second, parameters)->loss(batch, {});
      };
      check_ok(gradcheck(loss, values, 1e-6, 1e-4, 5));
      check_ok(gradgradcheck(loss, values, 1e-4, 1e-4, 2));
    }
  }

  TEST_CASE("what stands behind the lengths changes no bit of the loss or of the gradients") {
    for (auto const& model : all_models()) {
      INFO("model.first ", model.first, ", model.second.name ", model.second.name);
      Parameters parameters(3, DType::float64, wide(0.4));
      auto const subject = made(model.first, model.second, parameters);
      Batch const batch = some_batch(model.second.sequences);
      auto const measured = [&](Batch const& of) {
        parameters.clear_gradients();
        Tensor const loss = subject->loss(of, {});
        loss.backward();
        return std::pair(loss.item(), all_gradients(parameters));
      };
      Batch other = batch;
      auto const ends = batch["lengths"].data<std::int64_t>();
      std::vector<Index> const lengths(ends.begin(), ends.end());
      other.set("inputs", changed_behind(batch["inputs"], lengths, vocabulary));
      other.set("segments", changed_behind(batch["segments"], lengths, 2));
      CHECK(measured(batch) == measured(other));
    }
  }

  TEST_CASE("float32 is near float64") {
    for (auto const& model : all_models()) {
      INFO("model.first ", model.first, ", model.second.name ", model.second.name);
      Parameters wide_ones(3, DType::float64, wide(0.4)), narrow(3, DType::float32, wide(0.4));
      auto const exact = made(model.first, model.second, wide_ones), rounded = made(model.first, model.second, narrow);
      narrow.assign(wide_ones.all());
      Batch const batch = some_batch(model.second.sequences);
      CHECK(rounded->loss(batch, {}).item() == doctest::Approx(exact->loss(batch, {}).item()).epsilon(1e-5));
    }
  }

  TEST_CASE("a span begins and ends in the passage or at the summary token alone") {
    auto const bert = made("bert", {"span", "span"});
    Batch const batch = some_batch(1);
    Tensor const logits = bert->run(batch, {}).predictions.front().head.logits();  // [rows, 2, places]
    REQUIRE(logits.shape() == Shape{rows, 2, length});
    for (Index row = 0; row < rows; ++row)
      for (Index end = 0; end < 2; ++end)
        for (Index position = 0; position < length; ++position) {
          bool const possible = heed::at(batch["passage"].data<std::int64_t>(), row * length + position) != 0;
          CHECK((logits.at((row * 2 + end) * length + position) > -1e6) == possible);
        }
  }

  TEST_CASE("label smoothing goes over the places that an answer can be at") {
    auto const bert = made("bert", {"span", "span"});
    Batch const batch = some_batch(1);
    Tensor const logits = bert->run(batch, {}).predictions.front().head.logits();
    auto const passage = batch["passage"].data<std::int64_t>(), targets = batch["span"].data<std::int64_t>();
    double wanted = 0;
    for (Index row = 0; row < 2 * rows; ++row) {
      std::vector<double> possible;
      Index right = 0;
      for (Index position = 0; position < length; ++position) {
        if (heed::at(passage, row / 2 * length + position) == 0) continue;
        if (position == heed::at(targets, row)) right = std::ssize(possible);
        possible.push_back(logits.at(row * length + position));
      }
      wanted += cross_entropy(Tensor::of(possible, {1, std::ssize(possible)}), Tensor::of(std::vector{right}, {1}), 0.1).item();
    }
    CHECK(bert->loss(batch, {}, 0.1).item() == doctest::Approx(wanted / (2 * rows)).epsilon(1e-9));
  }

  TEST_CASE("the likelihood of an option is the mean, or the sum, of its tokens' log-probabilities") {
    auto const scorer = made("gpt", {"likelihood", "likelihood", 2}), reader = made("gpt", {"", "language_model"});
    Batch const batch = some_batch(2);
    Tensor const scores = scorer->run(batch, {}).predictions.front().head.logits();
    for (Index sequence = 0; sequence < 2 * rows; ++sequence) {
      Tensor const inputs = batch["inputs"].viewed({2 * rows, length}).rows(sequence, 1);
      Tensor const targets = batch["targets"].viewed({2 * rows, length}).rows(sequence, 1);
      CHECK(scores.at(sequence) == doctest::Approx(-reader->loss({{"inputs", inputs}, {"targets", targets}}, {}).item()));
    }
  }

  TEST_CASE("through a bottleneck passes the state of the first target's position alone, and the number of positions since") {
    auto const gpt = made("gpt", {"", "bottleneck"});
    auto const logits = [&](std::vector<Index> const& inputs, std::vector<Index> const& targets) {
      auto const tokens = std::ssize(inputs);
      return gpt->logits({{"inputs", Tensor::of(inputs, {1, tokens})}, {"targets", Tensor::of(targets, {1, tokens})}}, {});
    };
    std::vector<Index> const asked{-1, -1, 3, 4, 5, 6};
    Tensor const before = logits({1, 2, 3, 4, 5, 6}, asked), behind = logits({1, 2, 3, 7, 8, 0}, asked);
    CHECK(before.to_vector() == behind.to_vector());  // whatever is read after the first target
    CHECK(logits({1, 2, 3}, {-1, -1, -1}).rows(0, 1).to_vector() == logits({1, 2, 3}, {-1, -1, 3}).rows(0, 1).to_vector());
    Tensor const other = logits({8, 2, 3, 4, 5, 6}, asked);
    std::set<double> seen;
    for (Index t = 2; t < 6; ++t) {
      CHECK(before.at(t * vocabulary) != other.at(t * vocabulary));
      CHECK(seen.insert(before.at(t * vocabulary)).second);
    }
    // A later first target, of an equal state: the same predictions by the distance to it.
    Tensor const one = logits({1, 2, 3, 4, 5, 6}, {-1, -1, -1, 4, 5, 6}), two = logits({1, 2, 3, 4, 5, 6}, {-1, -1, -1, 0, -1, -1});
    CHECK(one.to_vector() == two.to_vector());
    CHECK(std::ranges::none_of(head_choice(SeesText::all).options, [](auto const& option) { return option.name == "bottleneck"; }));
  }

  TEST_CASE("the same text in both orders: the sum of two summaries; the order of the orders does not matter") {
    auto const gpt = made("gpt", {"both orders", "classification", 2});
    Batch const batch = some_batch(2);
    auto const swapped = [&](char const* part) {
      Tensor const whole = batch[part], orders = whole.viewed({rows, 2, whole.elements() / rows / 2});
      return concatenate({slice(orders, 1, 1, 2), slice(orders, 1, 0, 1)}, 1).viewed(whole.shape());
    };
    Batch other = batch;
    for (char const* const part : {"inputs", "lengths", "targets", "segments"}) other.set(part, swapped(part));
    check_close(gpt->logits(batch, {}), gpt->logits(other, {}), 1e-12);
  }

  TEST_CASE("a bag of words is a mean: neither the order of tokens nor the repetition of all of them matters") {
    auto const bag = made("bag_of_words", {"", "classification"});
    auto const first_logit = [&](std::vector<Index> const& tokens) {
      Shape const shape{1, std::ssize(tokens)};
      return bag->logits({{"inputs", Tensor::of(tokens, shape)}, {"segments", Tensor::zeros(shape, DType::int64)}}, {}).at(0);
    };
    for (auto const& other : {std::vector<Index>{7, 4, 4}, {4, 7, 7, 4, 4, 4}})
      CHECK(first_logit(other) == doctest::Approx(first_logit({4, 7, 4})).epsilon(1e-12));
    CHECK(std::abs(first_logit({4, 7, 7}) - first_logit({4, 7, 4})) > 1e-6);
  }

  TEST_CASE("the weight of the auxiliary language model is λ: L3 = L2 + λ L1") {
    Batch const batch = some_batch(1);
    auto const loss = [&](double weight) {
      Case const each{"", "classification", 1, [weight](HeadSettings& s) { task(s).auxiliary = weight; }};
      return made("gpt", each)->loss(batch, {}).item();
    };
    double const language = made("gpt", {"", "language_model"})->loss(batch, {}).item();
    CHECK(loss(0.5) == doctest::Approx(loss(0) + 0.5 * language).epsilon(1e-12));
  }

  TEST_CASE("a head that does not go with a model or with data is refused, with the key") {
    auto const refused = [&](std::string const& kind, Case const& each, Signature const& data) {
      Parameters parameters(3, DType::float64);
      return refusal([&] { made(kind, each, data, parameters); });
    };
    Case const beside{"", "classification", 1, [](HeadSettings& s) { task(s).auxiliary = 0.5; }};
    CHECK(refused("bert", beside, signature(1, true, false)) ==
          "model.head.auxiliary: an auxiliary language-model loss needs a causal model");
    CHECK(refused("gpt", {"", "choice"}, signature(1, false, false)).starts_with("model.head: these data have no options to choose from"));
    CHECK(refused("gpt", {"", "classification"}, signature(2, false, true)).starts_with("model.head: options of a multiple choice"));
    CHECK(std::ranges::none_of(head_choice(SeesText::all).options, [](auto const& option) { return option.name == "likelihood"; }));
    CHECK(std::ranges::none_of(head_choice(SeesText::past).options, [](auto const& option) { return option.name == "next_sentence"; }));
  }

  TEST_CASE("a head for examples continues no text") {
    for (auto const& kind : kinds()) {
      if (kind == "bert") continue;
      CHECK(!made(kind, {"", "classification"})->decode({}, {}));
      CHECK(made(kind, {"", "language_model"})->decode({}, {}));
    }
  }
}
