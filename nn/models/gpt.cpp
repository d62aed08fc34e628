#include "nn/models/gpt.hpp"

namespace heed {

namespace {

Declared<ModelKind> const declared{
    {"gpt", "decoder-only Transformer, predicts the next token (Radford et al. 2018)",
     [](Settings const& settings) {
       return head_settings(dynamic_cast<GptSettings const&>(settings).head).reads({.targets = "next_token", .examples = "delimited"});
     },
     [] { return std::make_shared<GptSettings>(); },
     [](Parameters& parameters, Settings const& settings, Signature const& data) {
       return std::make_unique<Gpt>(parameters, dynamic_cast<GptSettings const&>(settings), data);
     }}};

}  // namespace

}  // namespace heed
