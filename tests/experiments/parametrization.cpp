// μP: what it changes and what it leaves, the coordinate check, and what is refused.

#include "nn/parametrization.hpp"

#include "autograd/graph.hpp"
#include "autograd/ops/elementwise.hpp"
#include "experiments/folder/csv.hpp"
#include "experiments/metric/statistics.hpp"
#include "nn/decode.hpp"
#include "nn/models/blocks.hpp"
#include "nn/optimizer.hpp"
#include "tests/experiments/refused.hpp"
#include "tests/experiments/said.hpp"
#include "tests/nn/choice.hpp"
#include "tests/nn/models.hpp"
#include "tests/rooms.hpp"

TEST_SUITE("parametrization") {
  using namespace heed;

  namespace {

  constexpr Index vocabulary = 12;

  StackSettings settings_of(Index width, std::optional<Index> base) {
    auto settings = test::sized<GptSettings>(2, 2, width, 8);
    settings.parametrization.kind = base ? "mup" : "standard";
    settings.parametrization.base = base;
    return settings;
  }

  Batch batch() {
    return {{"inputs", test::random_tokens({2, 8}, vocabulary)}, {"targets", test::random_tokens({2, 8}, vocabulary, "targets")}};
  }

  /// Parameters by name after some steps, logits and the states of an optimizer.
  std::map<std::string, std::vector<double>> trained(StackSettings const& settings, Choice const& optimizer, Index steps) {
    Parameters parameters(3, DType::float32);
    Gpt const gpt(parameters, settings, vocabulary);
    auto const made = make_optimizer(optimizer, parameters);
    for (Index step = 0; step < steps; ++step) {
      parameters.clear_gradients();
      gpt.loss(batch(), {}).backward();
      made->step(0.01);
    }
    auto all = test::values_by_name(parameters);
    all["logits"] = gpt.logits(batch(), {}).to_vector();
    for (auto const& [name, value] : made->state()) all["state " + name] = value.to_vector();
    return all;
  }

  Choice adamw(std::vector<GroupSettings> groups = {}) {
    auto choice = test::chosen(optimizer_choice(), "adamw", {{"weight_decay", 0.125}});
    dynamic_cast<OptimizerSettings&>(*choice.settings).groups.items = std::move(groups);
    return choice;
  }

  GroupSettings group(std::string const& match, std::optional<double> lr, std::optional<double> lr_factor) {
    GroupSettings made;
    made.match = match, made.lr = lr, made.lr_factor = lr_factor;
    return made;
  }

  }  // namespace

  TEST_CASE("at the base width μP is the standard parametrization, bit by bit") {
    for (bool const tie : {true, false})
      for (std::string const position : {"learned", "rotary"}) {
        INFO("tie ", tie, ", position ", position);
        auto standard = settings_of(24, {}), mup = settings_of(24, 24);  // 1/√12 and √24/√24 are not exact
        standard.tie = mup.tie = tie, standard.position = mup.position = position;
        CHECK(trained(mup, adamw(), 6) == trained(standard, adamw(), 6));
      }
    CHECK(trained(settings_of(24, 12), adamw(), 6) != trained(settings_of(24, {}), adamw(), 6));
  }

  TEST_CASE("initial values, rates and decays by kind of matrix, four times as wide as the base") {
    auto settings = settings_of(64, 16);
    settings.tie = false, settings.attention.forget = true;
    auto narrow = settings;
    narrow.mlp_width = 40;
    struct Expected {
      double spread, rate;
    };
    auto const check = [](StackSettings const& wide, std::map<std::string, Expected> const& hidden) {
      auto standard = wide;
      standard.parametrization = {};
      Parameters mup(3, DType::float32), usual(3, DType::float32);
      Gpt const of_mup(mup, wide, vocabulary), of_usual(usual, standard, vocabulary);
      auto const found =
          treatments(mup, {group("*", {}, 0.5), group("blocks.1.*", 0.02, {}), group("*.up.weight", {}, 0.25)}, std::nullopt, 0.01);
      for (std::size_t i = 0; i < found.size(); ++i) {
        auto const& name = mup.all()[i].first;
        CAPTURE(name);
        auto const part = std::ranges::find_if(hidden, [&](auto const& each) { return name.ends_with(each.first); });
        Expected const expected = part == hidden.end() || !name.starts_with("blocks.") ? Expected{1, 1} : part->second;
        CHECK(mup.all()[i].second.to_vector() == scale(usual.all()[i].second.detach(), expected.spread).to_vector());
        double const of_group = name.ends_with("up.weight") ? 0.25 : name.starts_with("blocks.1.") ? 2 : 0.5;
        CHECK(found[i].rate == expected.rate * of_group);
        CHECK(found[i].decay_factor == 1 / expected.rate);
      }
    };
    Expected const of_hidden{0.5, 0.25}, of_few_outputs{0.25, 0.25};
    std::map<std::string, Expected> hidden{{"forget.weight", of_few_outputs}};
    for (std::string const name : {"query", "key", "value", "output", "up", "down"}) hidden["." + name + ".weight"] = of_hidden;
    check(settings, hidden);
    hidden[".up.weight"] = of_few_outputs;
    hidden.erase(".down.weight");  // its inputs are as many at every width
    check(narrow, hidden);
  }

  TEST_CASE("an update moves a matrix by its own rate, and decays it by lr · λ whatever the width") {
    Parameters parameters(3, DType::float64);
    Gpt const gpt(parameters, settings_of(64, 16), vocabulary);
    auto const optimizer = make_optimizer(adamw(), parameters);
    for (auto [name, parameter] : parameters.all()) parameter.set_grad(Tensor::ones(parameter.shape(), DType::float64));
    std::map<std::string, double> before;
    for (auto const& [name, parameter] : parameters.all()) before[name] = parameter.to_vector().front();
    optimizer->step(0.01);  // the first step of Adam is lr · sign(gradient)
    std::map<std::string, double> const rates{{"blocks.0.attention.query.weight", 0.25},
                                              {"blocks.1.mlp.down.weight", 0.25},
                                              {"token_embedding.weight", 1},
                                              {"position_embedding.weight", 1}};
    for (auto const& each : rates) {
      INFO(each.first);
      double const expected = before[each.first] * (1 - 0.01 * 0.125) - 0.01 * each.second;
      CHECK(parameters.find(each.first)->to_vector().front() == doctest::Approx(expected).epsilon(1e-6));
    }
  }

  TEST_CASE("scores have √d_base/d, logits base/width, also token by token") {
    for (bool const own_width : {false, true}) {
      CAPTURE(own_width);
      auto mup = settings_of(32, 8), same = settings_of(32, {});
      if (own_width)
        mup.key_width = same.key_width = 16;  // of all widths: the scores stay
      else
        same.attention.scale = "0.125";  // √4/16
      Parameters drawn(3, DType::float64, test::wide(0.5));
      Gpt const first(drawn, mup, vocabulary);
      Parameters given = Parameters::given(drawn.all(), DType::float64);
      Gpt const second(given, same, vocabulary);
      Tensor const logits = first.logits(batch(), {});
      CHECK(logits.to_vector() == scale(second.logits(batch(), {}), 0.25).to_vector());
      auto const decoding = first.decode({}, {});
      Tensor const last = decoding->scores(batch()["inputs"]);
      Tensor const expected = last_position(logits);
      CHECK(test::relative_difference(last, expected) <= 1e-12);
      Parameters again = Parameters::given(drawn.all(), DType::float64);  // values that are given are not scaled once more
      CHECK(Gpt(again, mup, vocabulary).logits(batch(), {}).to_vector() == logits.to_vector());
    }
  }

  TEST_CASE("the coordinate check: after ten steps activations grow with the width in the standard form only" * test::needs("studies")) {
    test::Folder const folder;
    auto const study = test::trained(folder, "c", "seed: 7\nstudy: {kind: coordinates, steps: [10], draws: 2}\n");
    std::map<std::string, std::pair<std::vector<double>, std::vector<double>>> logs;
    auto const csv = parse_csv(test::get(study / "results.csv"));
    for (auto const& line : csv_lines(csv, "results.csv")) {
      auto& of = logs[line["parametrization"] + " " + line["activation"]];
      of.first.push_back(std::log(line.number("width"))), of.second.push_back(std::log(line.number("mean")));
    }
    CHECK(logs.size() == 6);
    for (auto const& each : logs) {
      double const slope = fit_line(each.second.first, each.second.second).slope;
      INFO(each.first, ": ", slope);
      CHECK(each.second.first.size() == 4);
      if (each.first.starts_with("mup"))
        CHECK(std::abs(slope) < 0.2);
      else
        CHECK(slope > 0.5);
    }
    test::check_holds(test::get(study / "report.html"), {"mup, logits, after 10 steps: the mean of |x| goes as the width to the power "});
  }

  TEST_CASE_FIXTURE(test::InFolder, "activations that are not finite have no power of the width") {
    auto const study = test::trained(
        folder, "c",
        "study: {kind: coordinates, parametrization: [standard], width: [8, 16], steps: [2], draws: 2, heads: 2, lr: 1e30, base: 8}\n");
    auto const page = test::get(study / "report.html");
    test::check_holds(page, {"the mean of |x| is not finite, or 0, at some width"});
    CHECK(page.find("to the power") == page.npos);
  }

  TEST_CASE("what has no rule is refused by place") {
    test::GoodRun const run({"name: bad", "data: {kind: copy}", "model: {kind: gpt, width: 32, parametrization: {kind: mup, base: 16}}",
                             "init: {std: 0.02}", "train: {steps: 1}"});
    auto const model = [](std::string const& keys) { return "model: {kind: gpt, width: 32, " + keys + "}"; };
    auto const mup = [&](std::string const& keys) { return model("parametrization: {kind: mup, base: 16}, " + keys); };
    run.refuses_lines(
        {{3, model("parametrization: {kind: mup, base: 0}"), {"bad.yaml:3:", "parametrization.base"}},
         {3, model("parametrization: {kind: mup, base: -8}"), {"bad.yaml:3:", "parametrization.base"}},
         {3, model("parametrization: {kind: mup}"), {"bad.yaml:3:", "base: mup wants the width"}},
         {3, model("parametrization: mup"), {"bad.yaml:3:", "parametrization"}},
         {3, model("parametrization: {base: 16}"), {"bad.yaml:3:", "base: only mup has one"}},
         {3, model("parametrization: {kind: mup, base: 18}"), {"bad.yaml:3:", "4 heads do not divide the width 18"}},
         {3, mup("attention: additive"), {"bad.yaml:3:", "attention.score", "'additive'"}},
         {3, mup("attention: {scale: inverse}"), {"bad.yaml:3:", "attention.scale", "'inverse'"}},
         {3, mup("attention: deltanet, position: none"), {"bad.yaml:3:", "attention.linear"}},
         {3, mup("attention: {align: local_p}"), {"bad.yaml:3:", "attention.align"}},
         {3, mup("attention: {differential: true}"), {"bad.yaml:3:", "attention.differential"}},
         {3, mup("layer_types: [scaled, dot], layers: 2"), {"bad.yaml:3:", "layer_types.1", "'dot'"}},
         {3, mup("position: t5"), {"bad.yaml:3:", "position: mup has no rule for 't5'"}},
         {3, mup("head: classification"), {"bad.yaml:3:", "head: mup", "'classification'"}},
         {3, "model: {kind: single_attention, parametrization: {kind: mup, base: 16}}", {"bad.yaml:3:", "parametrization"}},
         {4, "init: {scheme: xavier}", {"bad.yaml:4:", "init.scheme: xavier"}},
         {5, "train: {steps: 1, optimizer: sgd}", {"bad.yaml:5:", "train.optimizer.kind", "not for sgd"}},
         {5, "train: {steps: 1, optimizer: muon}", {"bad.yaml:5:", "train.optimizer.kind", "not for muon"}},
         {5, "train: {steps: 1, optimizer: {kind: adam, weight_decay: 0.1}}", {"bad.yaml:5:", "train.optimizer", "use adamw"}},
         {5, "train: {steps: 1, schedule: noam}", {"bad.yaml:5:", "train.schedule.kind: noam"}}});
  }
}
