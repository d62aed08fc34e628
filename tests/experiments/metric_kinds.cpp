#include "experiments/folder/record.hpp"
#include "experiments/metric/bleu.hpp"
#include "experiments/metric/evaluated_batch.hpp"
#include "tests/experiments/task.hpp"
#include "tests/experiments/written.hpp"
#include "tests/nn/small_model.hpp"

// Every kind of metric by itself. What evaluations always have: suite validation.

TEST_SUITE("metric_kinds") {
  using namespace heed;

  namespace {

  /// Writes what the source says, without having learnt it; looks at the place that it writes, or at the one after it.
  class Parrot : public test::SmallModel {
   public:
    explicit Parrot(Index vocabulary, Index looks_ahead = 0) : SmallModel(12, vocabulary), looks_ahead_(looks_ahead) {}

    Outcome run(Batch const& batch, Pass const& pass) const override {
      Tensor const& source = batch["source"];
      Index const rows = source.size(0), length = batch["inputs"].size(1), keys = source.size(1);
      if (pass.watches_attention()) {
        for (Index const ahead : {looks_ahead_, Index{0}}) watch(pass, {rows, 1, length, keys}, ahead);
      }
      Tensor logits = Tensor::full({rows, length, vocabulary()}, 0, DType::float32);
      for (Index row = 0; row < rows; ++row)
        for (Index position = 0; position < std::min(length, keys); ++position)
          say(logits, row * length + position, at(source, row, position));
      return {{{Term(), {logits}}}};
    }
    std::unique_ptr<Decoding> decode(Batch const& given, Pass const&) const override {
      return given.has("source") ? std::make_unique<Reciting>(*this, given["source"]) : nullptr;
    }

   private:
    class Reciting : public Decoding {
     public:
      Reciting(Parrot const& parrot, Tensor const& source) : parrot_(parrot), source_(source) {
        for (Index row = 0; row < source.size(0); ++row) rows_.push_back(row);
      }
      Tensor scores(Tensor const& tokens) override {
        Tensor result = Tensor::full({tokens.size(0), parrot_.vocabulary()}, 0, DType::float32);
        for (std::size_t row = 0; row < rows_.size(); ++row) say(result, static_cast<Index>(row), at(source_, rows_[row], position_));
        ++position_;
        return result;
      }
      void restart() override { position_ = 0; }
      void keep(std::span<Index const> rows) override {
        std::vector<Index> kept;
        for (auto const row : rows) kept.push_back(heed::at(rows_, row));
        rows_ = kept;
      }

     private:
      Parrot const& parrot_;
      Tensor source_;
      std::vector<Index> rows_;
      Index position_ = 0;
    };

    static Index at(Tensor const& source, Index row, Index position) {
      return position < source.size(1) ? heed::at(source.data<std::int64_t>(), row * source.size(1) + position) : Tokenizer::eos;
    }
    static void say(Tensor& logits, Index line, Index token) {
      heed::at(logits.mutable_data<float>(), line * logits.size(-1) + token) = 20;
    }
    static void watch(Pass const& pass, Shape const& shape, Index ahead) {
      Tensor weights = Tensor::full(shape, 0, DType::float32);
      Tensor const nothing;
      for (Index query = 0; query < shape[0] * shape[2]; ++query) {
        auto const key = std::min(query % shape[2] + ahead, shape[3] - 1);
        heed::at(weights.mutable_data<float>(), query * shape[3] + key) = ahead > 0 ? 0.8F : 0.6F;
      }
      Visibility const visibility;
      AttentionParts const own, cross{"inputs", "source"};
      pass.watching.observer->attention->add("self", {weights, weights, visibility, nothing, nothing, own});
      pass.watching.observer->attention->add("cross", {weights, weights, visibility, nothing, nothing, cross});
    }

    Index looks_ahead_;
  };

  /// A task on sources of five words, of six that there are.
  std::unique_ptr<Dataset> pairs(std::string const& task, std::string const& more = "") {
    std::string const keys = "{kind: " + task + ", length: 5, vocabulary: 6" + more + "}";
    auto const loaded = test::written("data: {kind: pairs, validation: 20, task: " + keys + "}\nmodel: {kind: transformer}\n");
    return open_dataset(loaded.settings.data, {.config_folder = {}, .data_folder = {}, .seed = 1, .quiet = true});
  }

  std::string why_not(std::string const& name, Dataset const& data, Model const& model) {
    auto const* const kind = Registry<MetricKind>::find(name);
    REQUIRE(kind != nullptr);
    return (kind->unavailable ? kind->unavailable(data, model) : std::nullopt).value_or("");
  }

  /// A kind of metric over all held-out rows, so many at once.
  std::map<std::string, double> measured(std::string const& name, Dataset const& data, Model const& model, Index at_once = 7) {
    CHECK(why_not(name, data, model) == "");
    auto const metric = Registry<MetricKind>::find(name)->make(data);
    for (Index i = 0; i < data.validation_batches(at_once, model.context()); ++i)
      measure(data, model, held_out(data, i, at_once, model.context()), {}, greedily, {metric.get()});
    Row row;
    metric->write(row, "validation");
    return test::by_name(row);
  }

  }  // namespace

  TEST_CASE("decoded targets that are right, and none") {
    auto const copy = pairs("copy"), reverse = pairs("reverse");
    Parrot const parrot(copy->vocabulary());
    CHECK(measured("decoded.exact", *copy, parrot) == std::map<std::string, double>{{"validation.decoded.exact", 1}});
    CHECK(measured("decoded.exact", *reverse, parrot).at("validation.decoded.exact") == 0);
    CHECK(measured("bleu", *copy, parrot).at("validation.bleu") == doctest::Approx(100));
    CHECK(measured("bleu.13a", *copy, parrot).at("validation.bleu.13a") == doctest::Approx(100));
  }

  TEST_CASE("a first word that is given does not count in the loss, but has to be decoded") {
    auto const copy = pairs("copy", ", first: 1");
    CHECK(measured("decoded.exact", *copy, Parrot(copy->vocabulary())).at("validation.decoded.exact") == 1);
  }

  TEST_CASE("BLEU of decoded targets is that of their texts as one corpus, however many rows are seen at once") {
    auto const sort = pairs("sort");
    Parrot const parrot(sort->vocabulary());
    std::vector<std::string> said, wanted;
    Batch const all = sort->validation(0, 20, 12);
    for (Index row = 0; row < 20; ++row) {
      auto const source = all["source"].rows(row, 1).data<std::int64_t>();
      said.push_back(sort->facts().tokenizer->decode({source.begin(), source.end() - 1}));
      wanted.push_back(*sort->original(row).reference);
    }
    double const expected = corpus_bleu(said, wanted, {.tokens = BleuSettings::Tokens::words});
    CHECK(expected > 0);
    for (Index const at_once : {1, 7, 20}) {
      CHECK(measured("bleu", *sort, parrot, at_once).at("validation.bleu") == doctest::Approx(expected));
      CHECK(measured("bleu.13a", *sort, parrot, at_once).at("validation.bleu.13a") == doctest::Approx(corpus_bleu(said, wanted)));
    }
  }

  TEST_CASE("alignment errors: of all layers' mean, and of each layer") {
    auto const copy = pairs("copy");
    CHECK(measured("alignment_error", *copy, Parrot(copy->vocabulary())).at("validation.alignment_error") == 0);
    // One of two layers looks ahead, and surer than the other: each word but the last at the next one, the last at the mark of the end,
    // which is no word.
    Parrot const ahead(copy->vocabulary(), 1);
    CHECK(measured("alignment_error", *copy, ahead).at("validation.alignment_error") == doctest::Approx(0.8));
    CHECK(measured("alignment_error.layer*", *copy, ahead) ==
          std::map<std::string, double>{{"validation.alignment_error.layer0", 1}, {"validation.alignment_error.layer1", 0}});
  }

  TEST_CASE("perplexity is exp of the loss") {
    auto const copy = pairs("copy");
    Parrot const parrot(copy->vocabulary());
    CHECK(measured("perplexity", *copy, parrot).at("validation.perplexity") ==
          doctest::Approx(std::exp(measured("loss", *copy, parrot).at("validation.loss"))));
  }

  TEST_CASE("of nothing, a metric is no number") {
    auto const copy = pairs("copy");
    Parrot const parrot(copy->vocabulary());
    HeldOut none = held_out(*copy, 0, 2, 12);
    none.batch.set("targets", Tensor::full(none.batch["targets"].shape(), -1, DType::int64));
    none.links.assign(2, {});
    for (MetricKind const& kind : Registry<MetricKind>::all()) {
      if (kind.info.name == "lost_answers") continue;  // which are what does not count
      CAPTURE(kind.info.name);
      auto const metric = kind.make(*copy);
      for (bool const added : {false, true}) {
        bool const decodes = kind.info.name.starts_with("bleu") || kind.info.name.starts_with("decoded");
        if (added && decodes) continue;  // these are there, whatever counts in the loss
        if (added) measure(*copy, parrot, none, {}, greedily, {metric.get()});
        Row row;
        metric->write(row, "validation");
        if (!kind.info.name.ends_with("*")) CHECK(row.values.size() == 1);
        for (auto const& [name, value] : row.values) CHECK(std::isnan(value));
      }
    }
  }

  TEST_CASE("a kind says why it does not apply") {
    auto const copy = pairs("copy"), rows = test::task("copy");
    Parrot const parrot(copy->vocabulary());
    for (char const* const kind : {"bleu", "decoded.exact"})
      CHECK(why_not(kind, *rows, parrot) == "the data give no source to decode a target from");
    CHECK(why_not("alignment_error", *rows, parrot) == "the data give no source");
    CHECK(why_not("accuracy.*", *rows, parrot) == "the data define no groups of targets");
    CHECK(why_not("exact", *rows, parrot) == "");
    CHECK(Registry<MetricKind>::find("blue") == nullptr);
  }
}
