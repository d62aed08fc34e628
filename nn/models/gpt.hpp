#pragma once

#include "nn/models/blocks.hpp"

namespace heed {

struct GptSettings : TextStackSettings {
  GptSettings() : TextStackSettings(SeesText::past) {}
};

}  // namespace heed
