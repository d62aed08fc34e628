// "Adding a system": the model of nn/README and the metric of experiments/metrics, word for word, used like any other.

#include "tests/experiments/written.hpp"
#include "tests/folder.hpp"
#include "tests/rooms.hpp"

// nn/README begins
// Every word of a target asks the source's words, by one attention without positions, what comes next.

#include "autograd/graph.hpp"
#include "autograd/ops/elementwise.hpp"
#include "nn/attention/attention.hpp"
#include "nn/decode.hpp"

namespace heed {

namespace {

struct GlanceSettings : Settings {
  Index width = 64, context = 64;
  AttentionSettings attention;

  std::vector<Field> fields() override {
    return {field(&width, "width", "of a word").in(1, 65536), field(&context, "context", "words of a source, and of a target").in(1, 65536),
            field(&attention, "attention", "of a target's word to the source's")};
  }
};

class Glance : public Model {
 public:
  Glance(Parameters& parameters, GlanceSettings const& s, Signature const& data)
      : settings_(s),
        source_(Scope(parameters).at("source"), data["source"].classes, s.width),
        target_(Scope(parameters).at("target"), data["inputs"].classes, s.width),
        attention_(Scope(parameters).at("attention"), s.attention, {1, s.width, s.context}, 0, nullptr, {"inputs", "source"}) {}

  Outcome run(Batch const& batch, Pass const& pass) const override {
    Tensor const asking = target_(batch["inputs"]), memory = source_(batch["source"]);  // [B, T, width], [B, S, width]
    Visibility const sees{.causal = false, .lengths = batch.get("source_lengths"), .offset = 0};
    return {{{Term(), {asking + attention_(asking, memory, memory, sees, pass), target_.weight}}}};  // logits: [B, T, V]
  }
  std::unique_ptr<Decoding> decode(Batch const& given, Pass const& pass) const override;
  Index context() const override { return settings_.context; }
  Index vocabulary() const override { return target_.weight.size(0); }
  Index width() const override { return settings_.width; }
  double flops_per_token() const override { return static_cast<double>(settings_.width * (4 * settings_.context + 2 * vocabulary())); }

 private:
  GlanceSettings settings_;
  Embedding source_, target_;
  Attention attention_;
};

struct Writing : Decoding {
  Writing(Glance const& glance, Batch source) : model(glance), given(std::move(source)) {}

  Tensor scores(Tensor const& tokens) override {
    NoGrad const quiet;
    given.set("inputs", tokens.viewed({given.rows(), tokens.elements() / given.rows()}));
    return last_position(model.logits(given, {}));
  }
  void restart() override {}
  void keep(std::span<Index const> rows) override { given = given.chosen(rows); }

  Glance const& model;
  Batch given;
};

std::unique_ptr<Decoding> Glance::decode(Batch const& given, Pass const&) const {
  return given.has("source") ? std::make_unique<Writing>(*this, given) : nullptr;
}

Declared<ModelKind> const glance_model{
    model_of<Glance, GlanceSettings>("glance", "one attention from a target's words to a source's", {{"source"}, {"inputs"}, {"targets"}})};

}  // namespace

}  // namespace heed
// nn/README ends

// experiments/metrics begins
// Words that are written for each that the target has.

#include "experiments/metric/evaluated_batch.hpp"
#include "experiments/metric/row.hpp"

namespace heed {

namespace {

class LengthRatio : public Metric {
 public:
  void add(EvaluatedBatch const& batch) override {
    for (Index row = 0; row < batch.batch().rows(); ++row) {
      wanted_ += static_cast<double>(target_of(batch.batch(), row).size());
      written_ += static_cast<double>(at(batch.decoded(), row).tokens.size());
    }
  }
  void write(Row& row, std::string const& prefix) const override { row.set(prefix + ".decoded.length", written_ / wanted_); }

 private:
  double written_ = 0, wanted_ = 0;
};

Declared<MetricKind> const length_metric{{.info = {"decoded.length", "", std::nullopt, "words written for each of the target"},
                                          .unavailable = no_decoding,
                                          .make = [](Dataset const&) { return std::make_unique<LengthRatio>(); }}};

}  // namespace

}  // namespace heed
// experiments/metrics ends

TEST_SUITE("adding_a_system") {
  using namespace heed;

  namespace {

  LoadedExperiment sorting(std::string const& model) {
    return test::written("data: {kind: pairs, task: {kind: sort}}\nmodel: {" + model +
                         "}\ntrain: {steps: 200, batch: 32, evaluate: {metrics: [decoded.length]}, optimizer: {kind: adamw, lr: 0.01}}\n");
  }

  }  // namespace

  TEST_CASE("the manuals' code is what is tested here") {
    std::string const code = test::get("tests/experiments/adding_a_system.cpp");
    for (std::string const manual : {"nn/README", "experiments/metrics"}) {
      std::string const begin = "// " + manual + " begins\n";
      auto const first = code.find(begin) + begin.size(), last = code.find("// " + manual + " ends");
      REQUIRE(first < last);
      CHECK(test::get(manual + ".md").find("```cpp\n" + code.substr(first, last - first) + "```") != std::string::npos);
    }
  }

  TEST_CASE("it is found by its name, learns, and writes" * test::needs("translation")) {
    auto const loaded = sorting("kind: glance, attention: additive");
    Trainer trainer(loaded, true);
    Row before, after;
    trainer.evaluate(before);
    while (!trainer.finished()) trainer.train_step(after);
    trainer.evaluate(after);
    CHECK(*after.find("validation.loss") < 0.7 * *before.find("validation.loss"));
    for (Row const* const row : {&before, &after}) CHECK(*row->find("validation.decoded.length") > 0);
  }

  TEST_CASE("beams of many rows are those of each row alone" * test::needs("translation")) {
    auto const loaded = sorting("kind: glance");
    Trainer const trainer(loaded, true);
    Batch const batch = trainer.data().training(0, 6, trainer.model().context());
    Batch const sources{{"source", batch["source"]}, {"source_lengths", batch.get("source_lengths")}};
    auto const together = beam(trainer.model(), sources, 1, 2, 8, {.width = 3});
    REQUIRE(together.size() == 6);
    for (Index row = 0; row < 6; ++row) {
      auto const alone = beam(trainer.model(), sources.chosen({&row, 1}), 1, 2, 8, {.width = 3}).front();
      auto const& among = at(together, row);
      REQUIRE(alone.size() == among.size());
      for (std::size_t i = 0; i < alone.size(); ++i) CHECK(alone[i].tokens == among[i].tokens);
    }
  }
}
