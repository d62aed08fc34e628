#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "experiments/config/yaml.hpp"

namespace heed {

/// Refuses what cannot be the name of a folder inside another one: a path that leaves it ("..", "/tmp"), parts without a name (".",
/// "a//b"), control characters, and marks that are not shown or turn the text around them. `name` was written at `place` as the key's
/// value. Throws ConfigError.
void check_folder_name(Location const& place, std::string_view key, std::string_view name);

/// The same for the name of an arm, which is one part of its trials' folders: no "/" and at most most_label bytes.
void check_arm_name(Location const& place, std::string_view name);

/// Bytes of an arm's or a grid point's name, so that "tune-ARM-POINT-seedK-HASH" is no longer than a file system allows.
constexpr std::size_t most_label = 109;

/// Any text as a part of a file's name: ASCII letters, digits, '.', '_', '+' stay, anything else becomes '-'; "none" for nothing.
std::string file_label(std::string_view text);

/// A label of most_label bytes at most: what is longer ends in a hash of it, so that different labels stay different.
std::string cut_label(std::string label);

}  // namespace heed
