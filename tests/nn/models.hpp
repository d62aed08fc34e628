#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "autograd/graph.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/random.hpp"
#include "nn/hard_choices.hpp"
#include "nn/model.hpp"
#include "nn/parameters.hpp"
#include "nn/pass.hpp"
#include "tests/difference.hpp"

// Shared by the tests of models: small settings, random batches, results of a pass, and models as functions of their parameters.

namespace heed::test {

/// Initial weights that make outputs far from uniform.
inline InitSettings wide(double std = 0.5) {
  InitSettings init;
  init.std = std;
  return init;
}

/// Settings of a Transformer of two layers with two heads.
template <class Settings>
Settings small_stack(std::string const& attention, std::string const& position, std::int64_t width) {
  Settings settings;
  settings.layers = 2;
  settings.heads = 2;
  settings.width = width;
  settings.context = 12;
  settings.position = position;
  settings.attention.from_word(attention);
  return settings;
}

/// Integers in [0, classes) from a stream of this name.
inline Tensor random_tokens(Shape const& shape, std::int64_t classes, std::string const& name = "tokens", std::uint64_t seed = 5) {
  Stream const stream(seed, name);
  std::vector<std::int64_t> tokens;
  for (std::int64_t i = 0; i < shape.elements(); ++i)
    tokens.push_back(static_cast<std::int64_t>(stream.below(static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(classes))));
  return Tensor::of(tokens, shape);
}

/// The rows [B, T] with other tokens, or targets of −1, behind their lengths.
inline Tensor changed_behind(Tensor const& rows, std::vector<std::int64_t> const& lengths, std::int64_t classes, bool ignored = false) {
  Tensor result = rows.clone();
  auto const tokens = result.mutable_data<std::int64_t>();
  auto const length = static_cast<std::size_t>(rows.size(1));
  for (std::size_t at = 0; at < tokens.size(); ++at)
    if (static_cast<std::int64_t>(at % length) >= lengths[at / length])
      tokens[at] = ignored ? -1 : (tokens[at] + 1 + static_cast<std::int64_t>(at % 3)) % classes;
  return result;
}

/// The rows with another token at one position.
inline Tensor changed_at(Tensor const& rows, std::size_t position, std::int64_t classes) {
  Tensor result = rows.clone();
  auto& token = result.mutable_data<std::int64_t>()[position];
  token = (token + 1) % classes;
  return result;
}

/// The first position of the first row whose scores differ; −1: none does.
inline std::int64_t first_difference(Model const& model, Batch const& a, Batch const& b) {
  Tensor const before = model.logits(a, {});
  auto const values = before.to_vector(), others = model.logits(b, {}).to_vector();
  auto const at = std::ranges::mismatch(values, others).in1 - values.begin();
  return at == std::ssize(values) ? -1 : at / before.size(-1);
}

/// Checks the largest absolute difference.
inline void check_close(Tensor const& found, Tensor const& expected, double bound) {
  REQUIRE(found.shape() == expected.shape());
  double worst = 0;
  for (std::int64_t i = 0; i < found.elements(); ++i) worst = test::worse(worst, std::abs(found.at(i) - expected.at(i)));
  CHECK(worst <= bound);
}

/// Appends the gradients of all parameters, each of which must have one.
inline void append_gradients(std::vector<double>& all, Parameters const& parameters) {
  for (auto const& each : parameters.all()) {
    CAPTURE(each.first);
    REQUIRE(each.second.grad().defined());
    auto const gradient = each.second.grad().to_vector();
    all.insert(all.end(), gradient.begin(), gradient.end());
  }
}

/// The loss of a training pass, the scores where there are targets, and all gradients, those of hard attention's choices included.
inline std::vector<double> results(Model const& model, Parameters& parameters, Batch const& batch) {
  Pass pass;
  pass.training.noise = Stream(2, "noise");
  HardChoices choices;
  pass.watching.hard_choices = &choices;
  parameters.clear_gradients();
  Tensor loss = model.loss(batch, pass);
  for (auto const& made : choices.made) loss = loss + sum(log(made.probability)) + sum(made.entropy);
  loss.backward();
  std::vector<double> all{loss.item()};
  Tensor const logits = model.logits(batch, pass);
  auto const scores = logits.to_vector();
  auto const classes = logits.size(-1);
  auto const targets = batch["targets"].data<std::int64_t>();
  for (std::int64_t at = 0; at < std::ssize(targets); ++at)
    if (targets[static_cast<std::size_t>(at)] >= 0)
      all.insert(all.end(), scores.begin() + at * classes, scores.begin() + (at + 1) * classes);
  append_gradients(all, parameters);
  return all;
}

/// The values of parameters, as constants.
inline std::vector<Tensor> values_of(Parameters const& parameters) {
  std::vector<Tensor> values;
  for (auto const& each : parameters.all()) values.push_back(each.second.detach());
  return values;
}

/// Parameters of the same names with these values: for a model as a function of its parameters.
inline Parameters with_values(Parameters const& drawn, std::span<Tensor const> values) {
  std::vector<std::pair<std::string, Tensor>> named;
  for (std::size_t i = 0; i < values.size(); ++i) named.emplace_back(drawn.all()[i].first, values[i]);
  return Parameters::given(std::move(named), values.front().dtype());
}

}  // namespace heed::test
