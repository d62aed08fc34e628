#include "nn/attention/linear/parts.hpp"

namespace heed {

namespace {

struct Step : Write {
  void fill(LinearInputs& in, Tensor const&, Tensor const& step) const override { in.value = times_per_head(in.value, step); }
};

Declared<WriteKind> const step_write{
    {"step", "Δ_t v_t, Δ_t the decay's softplus", "Dao & Gu 2024",
     [](Scope const&, LinearSettings const&, LinearShape const&) { return std::make_unique<Step>(); }, true}};

}  // namespace

}  // namespace heed
