#include "experiments/commands/layer_lines.hpp"

#include <fmt/format.h>

namespace heed {

namespace {

/// Elements of the parameters of layer i, of encoder and decoder together.
Index elements_of_layer(Parameters const& parameters, Index i) {
  std::string const block = fmt::format("blocks.{}.", i);
  Index elements = 0;
  for (auto const& [name, value] : parameters.all())
    if (name.starts_with(block) || name.find("." + block) != name.npos) elements += value.elements();
  return elements;
}

}  // namespace

std::string layers_in_words(StackSettings const& settings, Parameters const& parameters) {
  std::string lines;
  auto const bytes = to_double(parameters.dtype() == DType::float32 ? 4 : 8);
  for (Index i = 0; i < settings.layers; ++i) {
    StackSettings const layer = settings.of_layer(i);
    double const context = to_double(layer.context), flops = context * layer.layer_flops(layer.causal ? context / 2 : context);
    std::string const named = settings.pattern.name_of(i, settings.layers);
    std::string const name = !named.empty() ? named : layer.attention.is_linear() ? layer.attention.linear.name : layer.attention.score;
    auto const kept = static_cast<Index>(bytes * to_double(layer.cached_numbers()));
    std::string const memory = layer.attention.is_linear() ? fmt::format("a state of {} bytes", kept)
                               : layer.sees > 0            ? fmt::format("{} bytes a token, of the last {}", kept, layer.sees)
                                                           : fmt::format("{} bytes a token", kept);
    lines += fmt::format("# layer {}: {}, position {}, {} parameters, {}, {:.3g} GFLOP\n", i, name, layer.position.kind,
                         elements_of_layer(parameters, i), memory, 1e-9 * flops);
  }
  return lines;
}

}  // namespace heed
