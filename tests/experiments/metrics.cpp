#include "experiments/folder/record.hpp"
#include "experiments/metric/info.hpp"
#include "tests/experiments/said.hpp"

// What metrics say of themselves.

TEST_SUITE("metrics") {
  using namespace heed;
  namespace {

  constexpr char const* config = R"(
data: {kind: recall, pairs: 2, keys: 4, values: 4, validation: 20}
model: {kind: gpt, layers: 1, heads: 1, width: 8, context: 8, position: rotary}
train: {steps: 30, batch: 2, ema: 0.9, evaluate: {every: 20, lengths: [8, 12]}, checkpoint: {every: 5}}
probes: {every: 15, attention: [entropy, max_weight, distance, first_token, score_mean, score_variance, sink_rate, induction], activations: [rms, kurtosis], curvature: [sharpness], gradients: [norm_by_layer, norm_by_parameter, scores, softmax_jacobian_trace, softmax_jacobian_norm]}
)";

  }  // namespace

  TEST_CASE("a metric says which direction is better, and its unit") {
    auto const declared = [](char const* unit, std::optional<Better> better, std::vector<std::string> const& metrics) {
      for (auto const& metric : metrics) {
        CAPTURE(metric);
        auto const* const info = find_metric(metric);
        REQUIRE(info != nullptr);
        CHECK(info->unit == unit);
        CHECK(info->better == better);
      }
    };
    declared("nat", Better::lower,
             {"loss", "validation.loss", "validation.ema.loss", "validation.excess", "validation.loss.length256",
              "validation.ema.loss.length256"});
    declared("", Better::higher,
             {"validation.accuracy", "validation.accuracy.far", "validation.accuracy.length256", "validation.ema.accuracy.length256",
              "validation.exact"});
    declared("1/s", Better::higher, {"time.tokens_per_second"});
    declared("B", Better::lower, {"memory.peak"});
    declared("", Better::lower, {"probe.curvature.sharpness"});
    declared("", std::nullopt, {"grad_norm", "probe.attention.sink_rate", "probe.attention.sink_rate.layer0"});
    declared("nat", std::nullopt, {"probe.attention.entropy.layer0.head1"});
    CHECK(find_metric("validation.accuracy.far")->name == "validation.accuracy.*");
    CHECK(find_metric("probe.gradients.norm.blocks.0.mlp.up.weight")->name == "probe.gradients.norm.*.*");
    for (char const* name : {"", "*", "validation", "validation.accuracy.", "validation.exct", "probe.attention.entropy.layer0"})
      CHECK_MESSAGE(find_metric(name) == nullptr, name);
    CHECK(with_unit("validation.loss") == "validation.loss (nat)");
    CHECK(with_unit("validation.exact") == "validation.exact");
    CHECK(with_unit("loss", "") == "loss");  // another program's
  }

  TEST_CASE("a name has parts, and is made of them again") {
    struct Case {
      std::string_view text;
      MetricKey key;
    };
    for (auto const& each :
         {Case{"loss", {.name = "loss"}}, Case{"time.seconds", {.split = "time", .name = "seconds"}},
          Case{"validation.ema.loss.length64", {.split = "validation.ema", .name = "loss", .length = 64}},
          Case{"validation.alignment_error.layer2", {.split = "validation", .name = "alignment_error", .layer = 2}},
          Case{"probe.attention.entropy.layer0.head11", {.split = "probe", .name = "attention.entropy", .layer = 0, .head = 11}},
          Case{"probe.x.layer1.head2.median", {.split = "probe", .name = "x", .layer = 1, .head = 2, .statistic = "median"}}}) {
      CAPTURE(each.text);
      CHECK(MetricKey::of(each.text) == each.key);
      CHECK(each.key.text() == each.text);
    }
    for (char const* text :
         {"", ".", "validation", "validation.", "layer1", "probe.layer1", "probe.x.layer01", "probe.x.layer-1", "probe.x.head1",
          "probe.x.layer1.a.b", "probe.x.layer1.", "x.length", "length8", "probe..layer99999999999999999999"})
      CHECK_MESSAGE(MetricKey::of(text).text() == text, text);
  }

  TEST_CASE_FIXTURE(test::InFolder, "whatever a run records is declared, and declared once") {
    std::set<std::string> names;
    for (auto const& info : Registry<MetricInfo>::all()) {
      CAPTURE(info.name);
      CHECK(names.insert(info.name).second);
      CHECK(!info.help.empty());
    }
    for (auto const& metric : read_history(test::trained(folder, "short", config))) {
      CHECK_MESSAGE(find_metric(metric.first) != nullptr, metric.first);
      CHECK(MetricKey::of(metric.first).text() == metric.first);
    }
  }
}
