#pragma once

#include <string>

namespace heed {

/// A JSON Schema (draft 7) of configuration files, made from the settings' own descriptions: for editors that complete and check YAML.
std::string schema();

}  // namespace heed
