#include "nn/models/bert.hpp"

namespace heed {

namespace {

DeclaredModel const declared{{"bert",
                              "bidirectional Transformer encoder, predicts masked tokens (Devlin et al. 2019)",
                              {{"inputs"}, {"targets", "masked_tokens"}},
                              [] { return std::make_shared<BertSettings>(); },
                              [](Parameters& parameters, Settings const& settings, Signature const& data) {
                                return std::make_unique<Bert>(parameters, dynamic_cast<BertSettings const&>(settings),
                                                              data["inputs"].classes);
                              }}};

}  // namespace

}  // namespace heed
