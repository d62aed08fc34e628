#include "experiments/report/added_parts.hpp"

namespace heed {

namespace {

/// Never destroyed and made on first use: parts register from static objects of many files.
std::vector<AddedParts>& all() {
  static auto* const parts = new std::vector<AddedParts>;
  return *parts;
}

}  // namespace

bool register_added_parts(AddedParts parts) {
  all().push_back(std::move(parts));
  return true;
}

std::vector<StudyPart> added_parts(Material const& material) {
  std::vector<StudyPart> found;
  for (auto const& parts : all()) {
    for (auto& part : parts(material)) found.push_back(std::move(part));
  }
  return found;
}

}  // namespace heed
