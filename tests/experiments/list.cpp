#include "experiments/commands/list.hpp"

#include "autograd/ops/info.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/config/table.hpp"
#include "experiments/config/yaml.hpp"
#include "experiments/metric/info.hpp"
#include "nn/attention/steps.hpp"
#include "nn/model.hpp"
#include "nn/position.hpp"
#include "tests/experiments/said.hpp"

TEST_SUITE("list") {
  using namespace heed;
  using test::check_holds;

  TEST_CASE("every topic has a page of clean lines, and the list of topics names them all") {
    auto const overview = list("");
    for (auto const& topic : Registry<ListTopic>::names()) {
      CAPTURE(topic);
      check_holds(overview, {"heed list " + topic + " "});
      auto const page = list(topic);
      CHECK(page.ends_with('\n'));
      for (auto const& line : test::lines_of(page)) CHECK(!line.ends_with(' '));
    }
  }

  TEST_CASE("what is declared is listed, with what it says of itself") {
    auto const attention = list("attention");
    for (auto const& kind : Registry<ScoreKind>::all()) check_holds(attention, {"\n  " + kind.name + " ", kind.formula, kind.paper});
    for (auto const& kind : Registry<AlignKind>::all()) check_holds(attention, {"\n  " + kind.name + " ", kind.formula});
    for (auto const& kind : Registry<ReadKind>::all()) check_holds(attention, {"\n  " + kind.name + " ", kind.formula});
    for (auto const& name : attention_names()) check_holds(attention, {"\n  " + name.name + " "});
    for (auto const& kind : Registry<PositionKind>::all()) check_holds(list("positions"), {"  " + kind.name + " "});
    for (auto const& kind : Registry<ModelKind>::all()) check_holds(list("models"), {"  " + kind.name + " ", kind.help});
    for (auto const& [operation, formula] : operations())
      check_holds(list("operations"), {fmt::format("  {} ", operation), std::string(formula)});
    check_holds(list("data"), {"  text ", "  grammar ", "  batches ", "tinyshakespeare "});
    check_holds(list("optimizers"), {"  sgd ", "  adam ", "  adamw "});
    check_holds(list("schedules"), {"  constant ", "  cosine "});
    for (auto const& info : Registry<MetricInfo>::all()) check_holds(list("metrics"), {"  " + info.name + " ", info.help});
    check_holds(list("keys"), {"train.optimizer.lr ", "model.attention.score ", "seed "});
  }

  TEST_CASE("the tables of variants in nn/README.md are those of the declarations") {
    INFO("nn/README.md differs from `heed list attention --markdown`");
    CHECK(test::get("nn/README.md").find(list("attention", "", true)) != std::string::npos);
    CHECK_THROWS_WITH_AS(list("keys", "", true), doctest::Contains("applies only to the topics 'attention' and 'ablation'"), ConfigError);
  }

  TEST_CASE("a variant is listed with its parameters, cost, and where it is differentiable") {
    auto const page = list("attention");
    check_holds(page, {"sharpness [H] ", "matrix [H, d, d] ", "matrix [H, context, d] ", "scale [H] if `scale: learned` ",
                       "position_matrix [H, d, d], position_vector [H, d] ", "except where a key enters the window "});
    for (auto const& kind : Registry<AlignKind>::all()) check_holds(page, {kind.cost, kind.smooth});
  }

  TEST_CASE("a line a model, and all of one by its name: keys, defaults, help and parameters") {
    auto const page = list("models");
    CHECK(static_cast<std::size_t>(std::ranges::count(page, '\n')) <= Registry<ModelKind>::all().size() + 2);
    for (auto const& kind : Registry<ModelKind>::all())
      check_holds(list("models", kind.name),
                  {kind.name + ": " + kind.help + "\n", "\n  width ", "parameters by the names that a checkpoint has"});
    auto const gpt = list("models", "gpt");
    check_holds(gpt, {"  layers ", "integer ≥ 1", "  attention.score ", "  token_embedding.weight ", "  blocks.{i}.attention.query.weight ",
                      "  blocks.{i}.mlp.up.bias ", " [65, "});
    CHECK(gpt.find("blocks.1.") == gpt.npos);
  }

  TEST_CASE("whatever a topic has is told by its name too") {
    for (auto const& topic : Registry<ListTopic>::all())
      for (auto const& entry : topic.entries ? topic.entries() : std::vector<ListEntry>()) {
        std::string const name = entry.name;
        INFO("topic.name ", topic.name, ", name ", name);
        auto const page = list(topic.name, name);
        CHECK(page.ends_with('\n'));
        CHECK(page.size() < list("keys").size());
        check_holds(page, {name});
      }
    check_holds(list("attention", "additive"),
                {"vᵀ tanh(q_i + k_j)", "vector [H, d]", "Bahdanau et al. 2015", "`attention: additive` stands for {score: additive,"});
    check_holds(list("tasks", "copy"), {"\n  validation "});
    check_holds(list("probes", "entropy"), {"probe.attention.entropy.layer*.head*"});
    check_holds(list("keys", "train"), {"train.optimizer.lr "});
    CHECK(list("keys", "train").find("model.") == std::string::npos);
    CHECK_THROWS_WITH_AS(list("models", "gtp"), doctest::Contains("models: there is no 'gtp'; did you mean 'gpt'? (there are bag_"),
                         ConfigError);
    CHECK_THROWS_WITH_AS(list("operations", "abs"), doctest::Contains("the topic 'operations' has a single page"), ConfigError);
  }

  TEST_CASE("an unknown topic is refused with the nearest") {
    CHECK_THROWS_WITH_AS(list("atention"), doctest::Contains("there is no topic 'atention'; did you mean 'attention'?"), ConfigError);
    CHECK(nearest("study", {"models", "studies"}) == "studies");  // which is no topic where that room is left out
  }

  TEST_CASE("columns of a terminal") {
    CHECK(columns("") == 0);
    CHECK(columns("abc") == 3);
    CHECK(columns("Σ_j α·√d ²⁻ᵀ") == 12);
    CHECK(columns("e\u0301") == 1);
    CHECK(columns("\xFF\xFE") == 2);  // no UTF-8
  }

  TEST_CASE("a text cut to a width") {
    CHECK(cut("αβγδ", 4) == "αβγδ");
    CHECK(cut("αβγδε", 4) == "αβγ…");
    CHECK(cut("αβγ", 1) == "…");
    CHECK(cut("αβγ", 0).empty());
    for (std::size_t width = 0; width < 12; ++width) CHECK(columns(cut("naïve Σx\u0302 mean", width)) <= width);
  }

  TEST_CASE("a table aligns its columns and leaves out what is empty") {
    CHECK(table({{"a", "Σ", "", "x"}, {"bbb", "", "", "y"}, {"c", "αβγ"}}) ==
          "  a    Σ    x\n"
          "  bbb       y\n"
          "  c    αβγ\n");
    CHECK(table({}).empty());
  }
}
