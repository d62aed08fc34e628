#include "nn/models/bert.hpp"

namespace heed {

namespace {

Declared<ModelKind> const bert_model{model_of<Bert, BertSettings>(
    "bert", "bidirectional Transformer encoder, predicts masked tokens (Devlin et al. 2019)", [](Settings const& settings) {
      auto const& bert = dynamic_cast<BertSettings const&>(settings);
      return head_settings(bert.head).reads(
          {.targets = "masked_tokens", .examples = "segmented", .segments = true, .view_settings = &bert.masking});
    })};

}  // namespace

}  // namespace heed
