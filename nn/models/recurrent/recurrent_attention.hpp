#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nn/attention/steps.hpp"

namespace heed {

/// `attention:` of a recurrent decoder: none, or its kind and position in the step.
struct RecurrentAttentionSettings : AttentionSettings {
  std::string style = "luong";

  bool bahdanau() const { return style == "bahdanau"; }
  bool luong() const { return style == "luong"; }
  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
  /// none; bahdanau: {style: bahdanau, score: additive}; luong: {style: luong, score: general}; or a name of attention, in Luong's style.
  bool from_word(std::string_view word) override;
  std::vector<std::string> short_words() override;
};

}  // namespace heed
