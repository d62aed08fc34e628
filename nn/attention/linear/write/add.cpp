#include "nn/attention/linear/parts.hpp"

namespace heed {

namespace {

struct Add : Write {
  void fill(LinearInputs&, Tensor const&, Tensor const&) const override {}
};

Declared<WriteKind> const add_write{
    {"add", "v_t", "Katharopoulos et al. 2020",
     [](Scope const&, LinearSettings const&, LinearShape const&) { return std::make_unique<Add>(); }}};

}  // namespace

}  // namespace heed
