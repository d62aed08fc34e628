// Queries and keys rotated by their position, so that q_i·k_j depends on i − j alone

#include "nn/position.hpp"

namespace heed {

namespace {

struct Rotation : AttentionPosition {
  explicit Rotation(std::int64_t count) : heads(count) {}
  Tensor rotate(Tensor const& x, std::int64_t offset) const override { return rotary(x, heads, offset); }

  std::int64_t heads;
};

struct Rotary : Position {
  std::unique_ptr<AttentionPosition> in_attention(Scope const&, std::int64_t heads, std::int64_t) const override {
    return std::make_unique<Rotation>(heads);
  }
};

DeclaredPosition const declared{
    {"rotary", "pairs of q_p and k_p turned by p/10000^{2i/d}", "Su et al. 2021", "goes on",
     [](Scope const&, PositionShape const&) -> std::unique_ptr<Position> { return std::make_unique<Rotary>(); }}};

}  // namespace

}  // namespace heed
