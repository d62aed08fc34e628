#include "experiments/run/file_kind.hpp"

#include <algorithm>

namespace heed {

FileKind const* file_kind_of(Document const& document) {
  auto const& all = Registry<FileKind>::all();
  auto const kind = std::ranges::find_if(all, [&](FileKind const& each) { return each.is(document); });
  return kind == all.end() ? nullptr : &*kind;
}

}  // namespace heed
