#include "nn/models/gpt.hpp"

namespace heed {

namespace {

DeclaredModel const declared{{"gpt", "decoder-only Transformer, predicts the next token (Radford et al. 2018)", Objective::next_token,
                              [] { return std::make_shared<GptSettings>(); },
                              [](Parameters& parameters, Settings const& settings, std::int64_t vocabulary) {
                                return std::make_unique<Gpt>(parameters, dynamic_cast<GptSettings const&>(settings), vocabulary);
                              }}};

}  // namespace

}  // namespace heed
