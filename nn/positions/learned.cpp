// x_p + table[p]

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/shape.hpp"
#include "nn/layers.hpp"
#include "nn/position.hpp"

namespace heed {

namespace {

struct Learned : Position {
  Learned(Scope const& scope, PositionShape const& shape, Settings const&)
      : context(shape.context), table(scope.at("position_embedding"), shape.context, shape.width) {}
  Tensor embed(Tensor const& x, Index offset) const override {
    Index const end = offset + x.size(1);
    if (end > context) throw Error(fmt::format("learned positions: position {} is beyond the context of {}", end - 1, context));
    return x + slice(table.weight, 0, offset, end);
  }
  std::optional<Index> limit() const override { return context; }

  Index context;
  Embedding table;
};

Declared<PositionKind> const learned_position{
    {"learned", "x_p + table[p]", "Gehring et al. 2017", "not defined", makes<Learned>, PositionActsOn::embeddings}};

}  // namespace

}  // namespace heed
