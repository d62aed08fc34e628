#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nn/parameters.hpp"

namespace heed {

/// How a model knows where a token stands. Each kind is one declaration in position.cpp, which makes it known to YAML and `heed list`.
class Position {
 public:
  virtual ~Position() = default;
  /// x [B, T, width], whose first token stands at `offset`, with what this kind adds to embeddings.
  virtual Tensor embed(Tensor const& x, std::int64_t offset) const { return static_cast<void>(offset), x; }
  /// The longest sequence that it can place; nothing: any.
  virtual std::optional<std::int64_t> limit() const { return std::nullopt; }
};

struct PositionKind {
  std::string name, formula, paper;
  std::unique_ptr<Position> (*make)(Scope const& scope, std::int64_t context, std::int64_t width);
};

std::vector<PositionKind> const& position_kinds();
std::vector<std::string> position_names();
/// Throws Error for an unknown name.
std::unique_ptr<Position> make_position(std::string const& name, Scope const& scope, std::int64_t context, std::int64_t width);

/// PE[p, 2i] = sin(p / 10000^{2i/d}), PE[p, 2i+1] = cos(p / 10000^{2i/d}): [length, width], positions first … first + length − 1.
Tensor sinusoids(std::int64_t first, std::int64_t length, std::int64_t width, DType dtype);

}  // namespace heed
