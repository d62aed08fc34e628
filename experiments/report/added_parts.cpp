#include "experiments/report/added_parts.hpp"

namespace heed {

std::vector<StudyPart> added_parts(Material const& material) {
  std::vector<StudyPart> found;
  for (auto const& parts : Registry<AddedParts>::all()) {
    for (auto& part : parts(material)) found.push_back(std::move(part));
  }
  return found;
}

}  // namespace heed
