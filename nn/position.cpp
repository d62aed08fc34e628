#include "nn/position.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "autograd/operations.hpp"
#include "nn/layers.hpp"

namespace heed {

Tensor sinusoids(std::int64_t first, std::int64_t length, std::int64_t width, DType dtype) {
  std::vector<double> values;
  for (std::int64_t p = first; p < first + length; ++p) {
    for (std::int64_t i = 0; i < width; ++i) {
      double const angle = static_cast<double>(p) / std::pow(10000.0, static_cast<double>(i / 2 * 2) / static_cast<double>(width));
      values.push_back(i % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  }
  return Tensor::of(values, {length, width}, dtype);
}

namespace {

struct Nothing : Position {};

struct Learned : Position {
  Learned(Scope const& scope, std::int64_t count, std::int64_t width)
      : context(count), table(scope.at("position_embedding"), count, width) {}
  Tensor embed(Tensor const& x, std::int64_t offset) const override {
    std::int64_t const end = offset + x.size(1);
    if (end > context) throw Error(fmt::format("learned positions: position {} is beyond the context of {}", end - 1, context));
    return x + slice(table.weight, 0, offset, end);
  }
  std::optional<std::int64_t> limit() const override { return context; }

  std::int64_t context;
  Embedding table;
};

struct Sinusoidal : Position {
  Tensor embed(Tensor const& x, std::int64_t offset) const override {
    std::int64_t const end = offset + x.size(1);
    if (!table.defined() || table.size(0) < end) table = sinusoids(0, end, x.size(2), x.dtype());
    return x + table.rows(offset, x.size(1));
  }

  mutable Tensor table;  // as far as it has been needed
};

}  // namespace

std::vector<PositionKind> const& position_kinds() {
  static std::vector<PositionKind> const kinds{
      {"none", "nothing: order only through the causal mask", "Haviv et al. 2022",
       [](Scope const&, std::int64_t, std::int64_t) -> std::unique_ptr<Position> { return std::make_unique<Nothing>(); }},
      {"learned", "x_p + table[p]", "Gehring et al. 2017",
       [](Scope const& scope, std::int64_t context, std::int64_t width) -> std::unique_ptr<Position> {
         return std::make_unique<Learned>(scope, context, width);
       }},
      {"sinusoidal", "x_p + [sin(p/10000^{2i/d}), cos(p/10000^{2i/d})]", "Vaswani et al. 2017",
       [](Scope const&, std::int64_t, std::int64_t) -> std::unique_ptr<Position> { return std::make_unique<Sinusoidal>(); }},
  };
  return kinds;
}

std::vector<std::string> position_names() {
  std::vector<std::string> names;
  std::ranges::transform(position_kinds(), std::back_inserter(names), &PositionKind::name);
  return names;
}

std::unique_ptr<Position> make_position(std::string const& name, Scope const& scope, std::int64_t context, std::int64_t width) {
  auto const found = std::ranges::find(position_kinds(), name, &PositionKind::name);
  if (found == position_kinds().end()) throw Error(fmt::format("position: '{}' is not one of {}", name, fmt::join(position_names(), ", ")));
  return found->make(scope, context, width);
}

}  // namespace heed
