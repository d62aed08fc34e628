#include "experiments/study/layers.hpp"

#include <cmath>

#include <fmt/format.h>

#include "autograd/graph.hpp"
#include "autograd/parallel.hpp"
#include "experiments/run/signals.hpp"
#include "nn/models/transformer_stack.hpp"

namespace heed {

namespace {

StackSettings stack(LayerDraws const& draws, std::string const& place, std::string const& scale, std::int64_t d_k) {
  StackSettings settings;
  settings.layers = draws.layers;
  settings.heads = 1;
  settings.width = LayerDraws::width;
  settings.context = LayerDraws::context;
  settings.position = "none";
  settings.attention.scale = scale;
  settings.norm.place = place;
  settings.tie = false;
  settings.key_width = d_k;
  return settings;
}

Tensor tokens(Stream const& stream) {
  std::vector<std::int64_t> drawn(static_cast<std::size_t>(LayerDraws::rows * LayerDraws::context));
  for (std::size_t i = 0; i < drawn.size(); ++i)
    drawn[i] = static_cast<std::int64_t>(stream.below(i, static_cast<std::uint64_t>(LayerDraws::vocabulary)));
  return Tensor::of(drawn, {LayerDraws::rows, LayerDraws::context});
}

}  // namespace

std::optional<LayerGradients> gradients_of_layers(LayerDraws const& draws, std::string const& place, std::string const& scale,
                                                  std::int64_t d_k, std::uint64_t seed) {
  LayerGradients result{place, scale, d_k, std::vector<std::vector<double>>(static_cast<std::size_t>(draws.layers))};
  auto const settings = stack(draws, place, scale, d_k);
  for (std::int64_t draw = 0; draw < draws.draws; ++draw) {
    if (interrupted()) return std::nullopt;
    WithGrad const recorded;
    Stream const stream = Stream(seed, "layers").child(static_cast<std::uint64_t>(draw));
    InitSettings init;
    init.std = 1 / std::sqrt(static_cast<double>(LayerDraws::width));
    Parameters parameters(stream.child("weights").bits(0) >> 1, DType::float32, init);
    TransformerStack const model(parameters, settings, LayerDraws::vocabulary, TransformerStack::Sees::past);
    Tensor embeddings = *parameters.find("token_embedding.weight");
    for (float& x : embeddings.mutable_data<float>()) x *= std::sqrt(static_cast<float>(LayerDraws::width));
    std::vector<Tensor> weights;
    for (std::int64_t layer = 0; layer < draws.layers; ++layer)
      weights.push_back(*parameters.find(fmt::format("blocks.{}.attention.query.weight", layer)));
    Batch const batch{{"inputs", tokens(stream.child("inputs"))}, {"targets", tokens(stream.child("targets"))}};
    auto const gradients = grad({model.loss(batch, {})}, weights);
    for (std::size_t layer = 0; layer < gradients.size(); ++layer) {
      double squares = 0;
      for (double const x : gradients[layer].to_vector()) squares += x * x;
      result.norms[layer].push_back(std::sqrt(squares));
    }
  }
  return result;
}

}  // namespace heed
