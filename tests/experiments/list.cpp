#include "experiments/commands/list.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "autograd/ops/info.hpp"
#include "experiments/config/table.hpp"
#include "experiments/config/yaml.hpp"
#include "experiments/metric/info.hpp"
#include "experiments/run/list_topic.hpp"
#include "nn/attention/steps.hpp"
#include "nn/model.hpp"
#include "nn/position.hpp"

TEST_SUITE("list") {
  using namespace heed;

  namespace {

  bool says(std::string const& page, std::string const& text) {
    INFO("looked for '", text, "' in\n", page);
    bool const found = page.find(text) != std::string::npos;
    CHECK(found);
    return found;
  }

  }  // namespace

  TEST_CASE("every topic has a page of clean lines, and the list of topics names them all") {
    auto const overview = list("");
    for (auto const& topic : list_topics()) {
      CAPTURE(topic);
      says(overview, "heed list " + topic + " ");
      auto const page = list(topic);
      CHECK(!page.empty());
      CHECK(page.back() == '\n');
      std::istringstream lines(page);
      for (std::string line; std::getline(lines, line);) CHECK((line.empty() || line.back() != ' '));
    }
  }

  TEST_CASE("what is declared is listed, with what it says of itself") {
    auto const attention = list("attention");
    for (auto const& kind : Registry<ScoreKind>::all())
      says(attention, "\n  " + kind.name + " ") && says(attention, kind.formula) && says(attention, kind.paper);
    for (auto const& kind : Registry<AlignKind>::all()) says(attention, "\n  " + kind.name + " ") && says(attention, kind.formula);
    for (auto const& kind : Registry<ReadKind>::all()) says(attention, "\n  " + kind.name + " ") && says(attention, kind.formula);
    for (auto const& name : attention_names()) says(attention, "\n  " + name.name + " ");
    for (auto const& kind : Registry<PositionKind>::all()) says(list("positions"), "  " + kind.name + " ");
    for (auto const& kind : Registry<ModelKind>::all()) says(list("models"), "  " + kind.name + " ") && says(list("models"), kind.help);
    for (auto const& [operation, formula] : operations())
      says(list("operations"), fmt::format("  {} ", operation)) && says(list("operations"), std::string(formula));
    for (char const* name : {"  text ", "  grammar ", "  batches ", "tinyshakespeare "}) says(list("data"), name);
    for (char const* name : {"  sgd ", "  adam ", "  adamw "}) says(list("optimizers"), name);
    for (char const* name : {"  constant ", "  cosine "}) says(list("schedules"), name);
    for (auto const& info : Registry<MetricInfo>::all()) says(list("metrics"), "  " + info.name + " ") && says(list("metrics"), info.help);
    for (char const* name : {"train.optimizer.lr ", "model.attention.score ", "seed "}) says(list("keys"), name);
  }

  TEST_CASE("the tables of variants in nn/README.md are those of the declarations") {
    std::ifstream file("nn/README.md");
    REQUIRE(file);
    std::string const readme(std::istreambuf_iterator<char>(file), {});
    std::string const tables = list("attention", "", true);
    INFO("nn/README.md differs from `heed list attention --markdown`");
    CHECK(readme.find(tables) != std::string::npos);
    CHECK_THROWS_WITH_AS(list("keys", "", true), doctest::Contains("applies only to the topics 'attention' and 'ablation'"), ConfigError);
  }

  TEST_CASE("a variant is listed with its parameters, cost, and where it is differentiable") {
    auto const page = list("attention");
    for (char const* text : {"sharpness [H] ", "matrix [H, d, d] ", "matrix [H, context, d] ", "scale [H] if `scale: learned` ",
                             "position_matrix [H, d, d], position_vector [H, d] ", "except where a key enters the window "})
      says(page, text);
    for (auto const& kind : Registry<AlignKind>::all()) says(page, kind.cost) && says(page, kind.smooth);
  }

  TEST_CASE("a line a model, and all of one by its name: keys, defaults, help and parameters") {
    auto const page = list("models");
    CHECK(static_cast<std::size_t>(std::ranges::count(page, '\n')) <= Registry<ModelKind>::all().size() + 2);
    for (auto const& kind : Registry<ModelKind>::all()) {
      auto const all = list("models", kind.name);
      says(all, kind.name + ": " + kind.help + "\n");
      says(all, "\n  width ");
      says(all, "parameters by the names that a checkpoint has");
    }
    auto const gpt = list("models", "gpt");
    for (char const* text : {"  layers ", "integer ≥ 1", "  attention.score ", "  token_embedding.weight ",
                             "  blocks.{i}.attention.query.weight ", "  blocks.{i}.mlp.up.bias ", " [65, "})
      says(gpt, text);
    CHECK(gpt.find("blocks.1.") == gpt.npos);
  }

  TEST_CASE("whatever a topic has is told by its name too") {
    for (auto const& topic : Registry<ListTopic>::all()) {
      for (auto const& entry : topic.entries ? topic.entries() : std::vector<ListEntry>()) {
        std::string const name = entry.name;
        CAPTURE(topic.name);
        CAPTURE(name);
        auto const page = list(topic.name, name);
        CHECK(!page.empty());
        CHECK(page.back() == '\n');
        CHECK(page.size() < list("keys").size());
        says(page, name);
      }
    }
    auto const additive = list("attention", "additive");
    for (char const* text :
         {"vᵀ tanh(q_i + k_j)", "vector [H, d]", "Bahdanau et al. 2015", "`attention: additive` stands for {score: additive,"})
      says(additive, text);
    says(list("tasks", "copy"), "\n  validation ");
    says(list("probes", "entropy"), "probe.attention.entropy.layer*.head*");
    says(list("keys", "train"), "train.optimizer.lr ");
    CHECK(list("keys", "train").find("model.") == std::string::npos);
    CHECK_THROWS_WITH_AS(list("models", "gtp"), doctest::Contains("models: there is no 'gtp'; did you mean 'gpt'? (there are bag_"),
                         ConfigError);
    CHECK_THROWS_WITH_AS(list("operations", "abs"), doctest::Contains("the topic 'operations' has a single page"), ConfigError);
  }

  TEST_CASE("an unknown topic is refused with the nearest") {
    CHECK_THROWS_WITH_AS(list("atention"), doctest::Contains("there is no topic 'atention'; did you mean 'attention'?"), ConfigError);
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
