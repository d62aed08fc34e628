#include "autograd/ops/shape.hpp"
#include "experiments/folder/record.hpp"
#include "experiments/metric/evaluated_batch.hpp"
#include "nn/models/blocks.hpp"
#include "tests/experiments/small_dataset.hpp"
#include "tests/nn/models.hpp"
#include "tests/nn/small_model.hpp"

TEST_SUITE("validation") {
  using namespace heed;

  namespace {

  /// Data of five tokens, of which only what they say of themselves is asked for.
  struct Told : test::SmallDataset {
    Told(bool task, TargetGroups names)
        : SmallDataset({{.name = "inputs", .classes = 5}, {.name = "targets", .classes = 5, .made_by = task ? "" : "next_token"}}) {
      facts_.groups = std::move(names);
    }
  };

  Batch batch(std::vector<Index> const& targets, std::vector<Index> const& groups = {}) {
    Shape const shape{static_cast<Index>(targets.size()) / 3, 3};
    Batch result{{"inputs", Tensor::full(shape, 0, DType::int64)}, {"targets", Tensor::of(targets, shape)}};
    if (!groups.empty()) result.set("groups", Tensor::of(groups, shape));
    return result;
  }

  /// Logits of rows of three places that hold the given numbers.
  Tensor scores(std::vector<double> const& values) { return Tensor::of(values, {static_cast<Index>(values.size()) / 15, 3, 5}); }

  /// A model that says what it is given.
  struct Says : test::SmallModel {
    explicit Says(Tensor scores) : SmallModel(3, 5), logits_(std::move(scores)) {}
    Outcome run(Batch const&, Pass const&) const override { return {{{Term(), {logits_}}}}; }
    Tensor logits_;
  };

  /// What every evaluation writes, of batches that are added one after the other.
  class Validation {
   public:
    explicit Validation(Dataset const& data) : data_(data) {
      for (auto const& kind : Registry<MetricKind>::all())
        if (kind.always && !(kind.unavailable && kind.unavailable(data, Says({})))) made_.push_back(kind.make(data));
    }
    void add(Model const& model, Batch const& rows) {
      EvaluatedBatch::Metrics metrics;
      for (auto const& metric : made_) metrics.push_back(metric.get());
      measure(data_, model, {rows, {}}, {}, greedily, metrics);
    }
    void add(Tensor const& scores, Batch const& rows) { add(Says(scores), rows); }
    std::map<std::string, double> written() const {
      Row row;
      for (auto const& metric : made_) metric->write(row, "validation");
      return {row.values.begin(), row.values.end()};
    }

   private:
    Dataset const& data_;
    std::vector<std::unique_ptr<Metric>> made_;
  };

  // Most probable, by place: 0, 3, 1.
  std::vector<double> const by_position{2, 1, 0, 0, 0, 0, 0, 1, 3, 2, 0, 2, 0, 0, 1};

  }  // namespace

  TEST_CASE("a row is right if all of its answers are; rows without any do not count") {
    Told const told(true, {});
    Validation validation(told);
    Tensor const one = scores(by_position);
    validation.add(concatenate({one, one, one}, 0), batch({0, -1, 1, 0, 2, -1, -1, -1, -1}));
    validation.add(one, batch({-1, 3, -1}));
    auto const values = validation.written();
    CHECK(values.at("validation.accuracy") == doctest::Approx(4.0 / 5));
    CHECK(values.at("validation.exact") == doctest::Approx(2.0 / 3));
    CHECK(values.size() == 3);
    double const first = std::log(std::exp(2) + std::exp(1) + 3), second = std::log(2 + std::exp(1) + std::exp(3) + std::exp(2)),
                 third = std::log(3 + std::exp(2) + std::exp(1));
    // The targets' logits: 2 and 2 at the first place, 1 and 3 at the second, 2 at the third.
    CHECK(values.at("validation.loss") == doctest::Approx((2 * (first - 2) + (second - 1) + (second - 3) + (third - 2)) / 5));
  }

  TEST_CASE("no exact rows where the data are no task") {
    Told const told(false, {});
    Validation validation(told);
    validation.add(scores(by_position), batch({0, 3, 2}));
    CHECK(!validation.written().contains("validation.exact"));
  }

  TEST_CASE("a group's answer is the most probable of the tokens that have a category, and right if that is the target's") {
    // Tokens 1 and 2 are singular, 4 is plural, 0 and 3 are nothing.
    Told const told(false, {.names = {"near", "far", "never"}, .categories = {-1, 0, 0, -1, 1}});
    Validation validation(told);
    // First place: 1 before 2 and 4 (singular); second: 4 (plural), though 3 is most probable; third: 1.
    validation.add(scores(by_position), batch({2, 1, 2}, {0, 0, 1}));
    validation.add(scores(by_position), batch({4, 4, 0}, {1, 0, -1}));
    auto const values = validation.written();
    CHECK(values.at("validation.accuracy") == 0);
    CHECK(values.at("validation.accuracy.near") == doctest::Approx(2.0 / 3));
    CHECK(values.at("validation.accuracy.far") == doctest::Approx(1.0 / 2));
    CHECK(!values.contains("validation.accuracy.never"));
  }

  TEST_CASE("a model's logits are worth the same in blocks as whole") {
    constexpr Index tokens = 5;
    Parameters parameters(3, DType::float64, test::wide());
    Gpt const model(parameters, test::sized<StackSettings>(1, 2, 8, 40), tokens);
    std::vector<Index> inputs, targets, groups;
    for (Index i = 0; i < 320; ++i) {
      inputs.push_back(i * i % tokens);
      targets.push_back(i % 7 == 2 ? -1 : i % 3 + i % 2);
      groups.push_back(targets.back() == 1 || targets.back() == 2 ? i % 2 : -1);
    }
    Batch const rows{
        {"inputs", Tensor::of(inputs, {8, 40})}, {"targets", Tensor::of(targets, {8, 40})}, {"groups", Tensor::of(groups, {8, 40})}};
    NoGrad const quiet;
    Told const told(true, {.names = {"even", "odd"}, .categories = {-1, 0, 1, -1, 1}});
    Validation given(told), whole(told), blocks(told);
    given.add(model.logits(rows, {}), rows);
    whole.add(model, rows);
    test::LogitsWithin const nothing(0);
    blocks.add(model, rows);
    CHECK(whole.written() == given.written());
    auto in_blocks = blocks.written();
    CHECK(in_blocks.at("validation.loss") == doctest::Approx(given.written().at("validation.loss")).epsilon(1e-13));
    in_blocks["validation.loss"] = given.written().at("validation.loss");
    CHECK(in_blocks == given.written());
  }
}
