#include "experiments/run/exchange/model_format.hpp"

#include <algorithm>

namespace heed {

namespace {

/// Made on first use: formats are static objects of many files.
std::vector<ModelFormat>& registry() {
  static auto* const formats = new std::vector<ModelFormat>;
  return *formats;
}

}  // namespace

DeclaredModelFormat::DeclaredModelFormat(ModelFormat format) {
  registry().push_back(std::move(format));
  std::ranges::sort(registry(), {}, &ModelFormat::name);
}

std::vector<ModelFormat> const& model_formats() { return registry(); }

}  // namespace heed
