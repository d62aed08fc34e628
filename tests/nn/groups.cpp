#include "nn/models/blocks.hpp"
#include "nn/optimizer.hpp"
#include "tests/nn/choice.hpp"
#include "tests/nn/models.hpp"
#include "tests/refusal.hpp"

using namespace heed;
using doctest::Approx, test::Keys, test::refusal;

namespace {

using Values = std::map<std::string, std::vector<double>>;

constexpr double lr = 0.125;  // rates that are powers of two are exact parts of each other

GroupSettings group(std::string const& match, std::function<void(GroupSettings&)> const& change = {}) {
  GroupSettings made;
  made.match = match;
  if (change) change(made);
  return made;
}
GroupSettings frozen(std::string const& match, std::optional<Index> unfreeze = {}) {
  return group(match, [&](GroupSettings& g) { g.frozen = true, g.unfreeze = unfreeze; });
}

Parameters model(DType dtype = DType::float64) {
  Parameters parameters(3, dtype);
  parameters.add("embedding.weight", {5, 4}, Initial::normal(1), WeightDecay::on);
  for (std::string const block : {"blocks.0.", "blocks.1."}) {
    parameters.add(block + "up.weight", {4, 3}, Initial::normal(1), WeightDecay::on);
    parameters.add(block + "up.bias", {4}, Initial::normal(1), WeightDecay::off);
  }
  parameters.add("norm.weight", {4}, Initial::normal(1), WeightDecay::off);
  return parameters;
}

std::unique_ptr<Optimizer> optimizer(Parameters const& parameters, std::string const& kind, std::vector<GroupSettings> const& groups,
                                     Keys settings = {}, std::optional<double> layer_decay = {}) {
  settings.emplace_back("lr", lr);
  auto choice = test::chosen(optimizer_choice(), kind, settings);
  auto& all = dynamic_cast<OptimizerSettings&>(*choice.settings);
  all.groups.items = groups;
  all.layer_decay = layer_decay;
  return make_optimizer(choice, parameters);
}

/// After steps [first, last) with a rate that changes.
void train(Parameters& parameters, Optimizer& tested, std::uint64_t first, std::uint64_t last) {
  for (std::uint64_t t = first; t < last; ++t) {
    test::draw_gradients(parameters, t);
    tested.step(t % 2 == 0 ? lr : lr / 4, 0.5);
  }
}

Values trained(std::string const& kind, std::vector<GroupSettings> const& groups, Keys const& settings = {},
               std::optional<double> layer_decay = {}, std::uint64_t steps = 6) {
  Parameters parameters = model();
  train(parameters, *optimizer(parameters, kind, groups, settings, layer_decay), 0, steps);
  return test::values_by_name(parameters);
}

std::map<std::string, double> rates(Parameters const& parameters, double decay, std::vector<GroupSettings> const& groups = {}) {
  auto const found = treatments(parameters, groups, decay, lr);
  std::map<std::string, double> all;
  for (std::size_t i = 0; i < found.size(); ++i) all[parameters.all()[i].first] = found[i].rate;
  return all;
}

GptSettings gpt_settings() { return test::sized<GptSettings>(3, 2, 8, 6); }

}  // namespace

TEST_SUITE("groups") {
  TEST_CASE("a * in a pattern is any text, dots and nothing included") {
    CHECK(matches("blocks.*.mlp.*", "blocks.11.mlp.up.weight"));
    CHECK(matches("*", ""));
    CHECK(matches("*.bias", "blocks.0.norm1.bias"));
    CHECK(matches("blocks.1*", "blocks.1.norm1.bias"));
    CHECK(matches("a**b", "ab"));
    CHECK(matches("*aab", "aaaab"));
    CHECK(!matches("blocks.*.mlp", "blocks.0.mlp.up.weight"));
    CHECK(!matches("blocks.*", "encoder.blocks.0"));
    CHECK(!matches("", "a"));
    CHECK(!matches("a*b*c", "acb"));
  }

  TEST_CASE("every kind trains a group as an optimizer with its rate and weight decay would; the rest as without groups") {
    for (std::string const kind : {"adamw", "adam", "sgd"}) {
      CAPTURE(kind);
      Keys const usual{{"weight_decay", 0.25}};
      auto const plain = trained(kind, {}, usual);
      auto const grouped = trained(kind,
                                   {group("blocks.*", [](GroupSettings& g) { g.lr = lr / 8; }),
                                    group("blocks.1.*", [](GroupSettings& g) { g.lr_factor = 0.5, g.weight_decay = 0.5; })},
                                   usual);
      auto const slow = trained(kind, {group("*", [](GroupSettings& g) { g.lr_factor = 0.125; })}, usual);
      Parameters half = model();
      auto const other = optimizer(half, kind, {}, {{"weight_decay", 0.5}});
      for (std::uint64_t t = 0; t < 6; ++t) test::draw_gradients(half, t), other->step((t % 2 == 0 ? lr : lr / 4) / 2, 0.5);
      auto const half_values = test::values_by_name(half);
      for (auto const& each : grouped) {
        CAPTURE(each.first);
        CHECK(each.second == (each.first.starts_with("blocks.1")   ? half_values
                              : each.first.starts_with("blocks.0") ? slow
                                                                   : plain)
                                 .at(each.first));
      }
      CHECK(slow != plain);
      CHECK(half_values != plain);
    }
  }

  TEST_CASE("what is frozen stays, wants no gradient, is in no norm and has no state") {
    for (std::string const kind : {"adamw", "adam", "sgd"}) {
      CAPTURE(kind);
      Parameters parameters = model();
      auto const before = test::values_by_name(parameters);
      test::draw_gradients(parameters, 0);
      auto const tested = optimizer(parameters, kind, {frozen("blocks.0.*")}, {{"weight_decay", 0.25}});
      CHECK(!parameters.find("blocks.0.up.weight")->requires_grad());
      CHECK(!parameters.find("blocks.0.up.weight")->grad().defined());  // that of before is forgotten
      train(parameters, *tested, 0, 3);
      for (auto const& [name, parameter] : parameters.all())
        CHECK((parameter.to_vector() == before.at(name)) == name.starts_with("blocks.0."));
      auto const all = test::all_gradients(parameters);  // of what is frozen zeros
      CHECK(gradient_norm(parameters) == Approx(std::sqrt(std::inner_product(all.begin(), all.end(), all.begin(), 0.0))).epsilon(1e-13));
      for (auto const& [name, value] : tested->state()) CHECK(name.find("blocks.0.") == name.npos);
    }
  }

  TEST_CASE("what is unfrozen is trained from then on as if that step were the first") {
    for (std::string const kind : {"adamw", "adam", "sgd"}) {
      CAPTURE(kind);
      Keys settings{{"weight_decay", 0.25}};
      if (kind == "sgd") settings.emplace_back("momentum", 0.5);
      Parameters parameters = model(), later = model();
      auto const tested = optimizer(parameters, kind, {frozen("*"), frozen("blocks.*", 4), group("norm.*")}, settings);
      auto const from_there = optimizer(later, kind, {}, settings);
      auto const before = test::values_by_name(parameters);
      train(parameters, *tested, 0, 4);
      CHECK(test::values_by_name(parameters).at("blocks.0.up.weight") == before.at("blocks.0.up.weight"));
      CHECK(parameters.find("blocks.0.up.weight")->requires_grad());  // the next pass computes its gradient
      CHECK(!parameters.find("embedding.weight")->requires_grad());
      train(parameters, *tested, 4, 9);
      train(later, *from_there, 4, 9);
      for (auto const& name : {"blocks.0.up.weight", "blocks.1.up.bias"})
        CHECK(test::values_by_name(parameters)[name] == test::values_by_name(later)[name]);
      CHECK(test::values_by_name(parameters).at("norm.weight") == trained(kind, {}, settings, {}, 9).at("norm.weight"));
    }
  }

  TEST_CASE("a state that is loaded before, at and after the unfreezing goes on with the same bits") {
    for (std::string const kind : {"adamw", "sgd"}) {
      Keys settings{{"weight_decay", 0.25}};
      if (kind == "sgd") settings.emplace_back("momentum", 0.5);
      std::vector<GroupSettings> const groups{frozen("embedding*"), frozen("blocks.0.*", 5), frozen("blocks.1.*", 3)};
      Parameters straight = model();
      train(straight, *optimizer(straight, kind, groups, settings, 0.5), 0, 8);
      for (std::uint64_t const stop : {0U, 2U, 3U, 4U, 5U, 6U}) {
        CAPTURE(stop);
        Parameters first = model(), second = model();
        auto const a = optimizer(first, kind, groups, settings, 0.5), b = optimizer(second, kind, groups, settings, 0.5);
        train(first, *a, 0, stop);
        second.assign(first.all());
        b->load_state(a->state());
        for (auto const& [name, parameter] : first.all()) CHECK(parameter.frozen() == second.find(name)->frozen());
        train(second, *b, stop, 8);
        CHECK(test::values_by_name(second) == test::values_by_name(straight));
      }
    }
  }

  TEST_CASE("layer-wise decay: each layer's rate is a share of the next one's, embeddings below, norm and heads above") {
    Parameters parameters(1, DType::float32);
    GptSettings settings = gpt_settings();
    settings.tie = false;
    Gpt const made(parameters, settings, 7);
    auto const found = rates(parameters, 0.5);
    CHECK(found.at("token_embedding.weight") == 1.0 / 16);
    CHECK(found.at("position_embedding.weight") == 1.0 / 16);
    CHECK(found.at("blocks.0.mlp.up.weight") == 1.0 / 8);
    CHECK(found.at("blocks.1.attention.query.bias") == 1.0 / 4);
    CHECK(found.at("blocks.2.norm1.weight") == 1.0 / 2);
    CHECK(found.at("norm.weight") == 1);
    CHECK(found.at("head.weight") == 1);
    auto const grouped = rates(
        parameters, 0.5,
        {group("blocks.0.*", [](GroupSettings& g) { g.lr_factor = 0.5; }), group("blocks.1.*", [](GroupSettings& g) { g.lr = lr / 2; })});
    CHECK(grouped.at("blocks.0.mlp.up.weight") == 1.0 / 16);
    CHECK(grouped.at("blocks.1.mlp.up.weight") == 1.0 / 2);
    CHECK(grouped.at("blocks.2.mlp.up.weight") == 1.0 / 2);
  }

  TEST_CASE("layer-wise decay of an encoder-decoder goes by the layers of each side") {
    Parameters parameters(1, DType::float32);
    for (char const* const name : {"token_embedding.weight", "encoder.blocks.0.w", "decoder.blocks.0.w", "decoder.blocks.1.w",
                                   "decoder.norm.weight", "heads.cells.0.w"})
      parameters.add(name, {2}, Initial::normal(1), WeightDecay::on);
    CHECK(rates(parameters, 0.5) == std::map<std::string, double>{{"token_embedding.weight", 1.0 / 8},
                                                                  {"encoder.blocks.0.w", 1.0 / 2},
                                                                  {"decoder.blocks.0.w", 1.0 / 4},
                                                                  {"decoder.blocks.1.w", 1.0 / 2},
                                                                  {"decoder.norm.weight", 1},
                                                                  {"heads.cells.0.w", 1}});
  }

  TEST_CASE("a frozen beginning of a Transformer is walked by nothing, and changes no other gradient") {
    for (bool const recompute : {false, true}) {
      CAPTURE(recompute);
      auto const gradients = [&](std::vector<GroupSettings> const& groups, Index& depth) {
        Parameters parameters(1, DType::float64);
        Gpt const made(parameters, gpt_settings(), 7);
        auto const tested = optimizer(parameters, "adamw", groups);
        Pass pass;
        pass.training.recompute = recompute;
        Tensor const loss = made.loss(test::some_text(), pass);
        depth = critical_path(loss);
        loss.backward();
        Values all;
        for (auto const& [name, parameter] : parameters.all())
          if (parameter.grad().defined()) all[name] = parameter.grad().to_vector();
        return all;
      };
      Index whole_depth = 0, half_depth = 0, middle_depth = 0;
      auto const whole = gradients({}, whole_depth);
      auto const half = gradients({frozen("*"), group("blocks.2.*"), group("norm.*")}, half_depth);
      CHECK(half.size() > 10);
      for (auto const& each : half) {
        CAPTURE(each.first);
        CHECK((each.first.starts_with("blocks.2.") || each.first.starts_with("norm.")));
        CHECK(each.second == whole.at(each.first));
      }
      CHECK(half_depth <= whole_depth / 2);
      auto const middle = gradients({frozen("blocks.1.*")}, middle_depth);  // what lies below is trained: the walk goes through
      for (auto const& each : middle) {
        CHECK(!each.first.starts_with("blocks.1."));
        CHECK(each.second == whole.at(each.first));
      }
      CHECK(middle.size() == whole.size() - 16);
    }
  }

  TEST_CASE("a running average leaves what is frozen exactly as it is") {
    Parameters parameters = model(DType::float32);
    auto const tested = optimizer(parameters, "adamw", {frozen("blocks.*"), frozen("embedding*", 8)});
    auto const before = test::values_by_name(parameters);
    AverageWeights average(parameters, 0.9);
    for (std::uint64_t t = 0; t < 20; ++t) train(parameters, *tested, t, t + 1), average.update();
    auto const now = test::values_by_name(parameters);
    average.swap();
    auto const mean = test::values_by_name(parameters);
    CHECK(mean.at("blocks.0.up.weight") == before.at("blocks.0.up.weight"));
    CHECK(mean.at("embedding.weight") != before.at("embedding.weight"));
    CHECK(mean.at("embedding.weight") != now.at("embedding.weight"));
  }

  TEST_CASE("groups that do not go with the parameters are refused") {
    Parameters const parameters = model();
    auto const refused = [&](std::vector<GroupSettings> const& groups) {
      return refusal([&] { treatments(parameters, groups, std::nullopt, lr); });
    };
    CHECK(refused({group("norm.*"), group("block.*")}) == "optimizer.groups.1.match: 'block.*' matches no parameter");
    CHECK(refused({group("blocks.0.*"), group("blocks.*")}) ==
          "optimizer.groups.0.match: later groups match all 2 parameters of 'blocks.0.*', and the last group that matches applies");
    CHECK(refused({group("*.bias", [](GroupSettings& g) { g.weight_decay = 0.5; })}) ==
          "optimizer.groups.0.weight_decay: '*.bias' matches no parameter with weight decay (biases, norms and scalars have none)");
    CHECK(refused({frozen("*", 3)}) == "optimizer.groups: all parameters are frozen: the first step would train nothing");
    Parameters flat(1, DType::float32);
    flat.add("weight", {2}, Initial::normal(1), WeightDecay::on);
    CHECK(refusal([&] { treatments(flat, {}, 0.5, lr); }) == "optimizer.layer_decay: the names of the model's parameters show no layers");
  }

  TEST_CASE("keys of a group that contradict each other are refused") {
    auto const contradiction = [](auto const& change) { return test::said(group("a"), change); };
    CHECK(contradiction([](GroupSettings& g) { g.unfreeze = 3; }) == "unfreeze: needs frozen: true");
    CHECK(contradiction([](GroupSettings& g) { g.lr = 1, g.lr_factor = 1; }) == "lr_factor: give either lr or lr_factor");
    CHECK(contradiction([](GroupSettings& g) { g.frozen = true, g.lr = 1; }) ==
          "lr: has no effect with frozen: true, unless unfreeze is given");
    CHECK(contradiction([](GroupSettings& g) { g.frozen = true, g.lr = 1, g.unfreeze = 5; }) == "");
    CHECK(contradiction([](GroupSettings& g) { g.match = ""; }) == "match: wants a pattern of names, such as blocks.0.*");
  }

  TEST_CASE("parameters are grouped before the first update") {
    Parameters parameters = model();
    auto const tested = optimizer(parameters, "adamw", {});
    CHECK(refusal([&] { tested->treat({}); }) == "adamw: 0 treatments of 6 parameters");
    train(parameters, *tested, 0, 1);
    CHECK(refusal([&] { tested->treat({}); }) == "adamw: parameters are grouped before the first update, not after 1");
  }
}
