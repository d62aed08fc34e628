#pragma once

#include "experiments/ablation/plan.hpp"
#include "tests/folder.hpp"
#include "tests/refusal.hpp"

// Files of ablations, over a small base, that are read and not run.

namespace heed::test {

inline constexpr char const* plain_base = R"(
data: {kind: recall, pairs: 2, keys: 4, values: 4}
model: {kind: gpt, layers: 1, heads: 1, width: 8, context: 8}
train: {steps: 4, batch: 2}
)";

inline void contains(std::string const& text, std::string const& part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
}

struct AblationFile {
  Folder folder;

  AblationFile() { put(folder / "base.yaml", plain_base); }
  Ablation load(std::string const& text, std::vector<std::string> const& overrides = {}) const {
    put(folder / "a.yaml", "ablation: a\nbase: base.yaml\n" + text);
    return load_ablation(folder / "a.yaml", overrides, {.output = folder / "runs", .data = {}, .config_folder = {}});
  }
  std::string refused(std::string const& text, std::vector<std::string> const& overrides = {}) const {
    return refusal<ConfigError>([&] { load(text, overrides); });
  }
  void refuses(std::string const& text, std::string const& message, std::vector<std::string> const& overrides = {}) const {
    contains(refused(text, overrides), message);
  }
};

inline std::vector<std::string> names(std::vector<Arm> const& arms) { return mapped(arms, &Arm::name); }

using Words = std::vector<std::string>;

}  // namespace heed::test
