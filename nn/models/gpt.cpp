#include "nn/models/gpt.hpp"

namespace heed {

namespace {

DeclaredModel const declared{{"gpt",
                              "decoder-only Transformer, predicts the next token (Radford et al. 2018)",
                              {{"inputs"}, {"targets", "next_token"}},
                              [] { return std::make_shared<GptSettings>(); },
                              [](Parameters& parameters, Settings const& settings, Signature const& data) {
                                return std::make_unique<Gpt>(parameters, dynamic_cast<GptSettings const&>(settings),
                                                             data["inputs"].classes);
                              }}};

}  // namespace

}  // namespace heed
