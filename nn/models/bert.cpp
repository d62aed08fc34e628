#include "nn/models/bert.hpp"

namespace heed {

namespace {

Declared<ModelKind> const bert_model{
    {"bert", "bidirectional Transformer encoder, predicts masked tokens (Devlin et al. 2019)",
     [](Settings const& settings) {
       auto const& bert = dynamic_cast<BertSettings const&>(settings);
       return head_settings(bert.head).reads(
           {.targets = "masked_tokens", .examples = "segmented", .segments = true, .view_settings = &bert.masking});
     },
     [] { return std::make_shared<BertSettings>(); },
     [](Parameters& parameters, Settings const& settings, Signature const& data) {
       return std::make_unique<Bert>(parameters, dynamic_cast<BertSettings const&>(settings), data);
     }}};

}  // namespace

std::vector<Field> BertSettings::fields() {
  auto all = TextStackSettings::fields();
  all.push_back(field(&masking, "masking", "which tokens are predicted, and what replaces them"));
  return all;
}

}  // namespace heed
