#include "experiments/study/layers.hpp"

#include <cmath>

#include <fmt/format.h>

#include "autograd/graph.hpp"
#include "experiments/metric/probe/probe.hpp"
#include "experiments/study/study.hpp"
#include "nn/models/blocks.hpp"

namespace heed {

namespace {

StackSettings stack(LayerDraws const& draws, std::string const& place, std::string const& scale, Index d_k) {
  StackSettings settings;
  settings.layers = draws.layers;
  settings.heads = 1;
  settings.width = LayerDraws::width;
  settings.context = LayerDraws::context;
  settings.position = "none";
  settings.attention.scale = scale;
  settings.norm.placement = place;
  settings.tie = false;
  settings.key_width = d_k;
  return settings;
}

Tensor tokens(Stream const& stream) {
  std::vector<Index> drawn(static_cast<std::size_t>(LayerDraws::rows * LayerDraws::context));
  for (std::size_t i = 0; i < drawn.size(); ++i)
    drawn[i] = static_cast<Index>(stream.below(i, static_cast<std::uint64_t>(LayerDraws::vocabulary)));
  return Tensor::of(drawn, {LayerDraws::rows, LayerDraws::context});
}

/// The norms of one draw, by layer.
std::vector<double> norms_of(LayerDraws const& draws, StackSettings const& settings, Stream const& stream) {
  WithGrad const recorded;
  InitSettings init;
  init.std = 1 / std::sqrt(static_cast<double>(LayerDraws::width));
  Parameters parameters(stream.child("weights").bits(0) >> 1, DType::float32, init);
  Gpt const model(parameters, settings, LayerDraws::vocabulary);
  Tensor embeddings = *parameters.find("token_embedding.weight");
  for (float& x : embeddings.mutable_data<float>()) x *= std::sqrt(static_cast<float>(LayerDraws::width));
  std::vector<Tensor> weights;
  for (Index layer = 0; layer < draws.layers; ++layer)
    weights.push_back(*parameters.find(fmt::format("blocks.{}.attention.query.weight", layer)));
  Batch const batch{{"inputs", tokens(stream.child("inputs"))}, {"targets", tokens(stream.child("targets"))}};
  return mapped(grad({model.loss(batch, {})}, weights), [](Tensor const& gradient) { return std::sqrt(squared_norm(gradient)); });
}

}  // namespace

std::vector<std::vector<double>> gradients_of_layers(LayerDraws const& draws, std::string const& place, std::string const& scale, Index d_k,
                                                     std::uint64_t seed) {
  std::vector<std::vector<double>> by_layer(static_cast<std::size_t>(draws.layers));
  auto const settings = stack(draws, place, scale, d_k);
  for (Index draw = 0; draw < draws.draws; ++draw) {
    auto const norms = norms_of(draws, settings, Stream(seed, "layers").child(static_cast<std::uint64_t>(draw)));
    for (std::size_t layer = 0; layer < norms.size(); ++layer) by_layer[layer].push_back(norms[layer]);
    stop_if_interrupted();
  }
  return by_layer;
}

}  // namespace heed
