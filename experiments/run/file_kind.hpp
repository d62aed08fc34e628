#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "autograd/registry.hpp"
#include "experiments/run/session.hpp"

namespace heed {

/// A kind of file that `heed run` and `heed check` take beside that of one run and of an ablation, declared in its room.
struct FileKind {
  std::string name;  ///< the key that its files have: "study"
  bool (*is)(Document const& document);
  Exit (*run)(RunOptions const& options);
  Exit (*check)(RunOptions const& options);
  std::unique_ptr<Settings> (*settings)();  ///< fresh ones of a whole file, for its schema
};
/// Of which kind a file is; null: of none of these.
inline FileKind const* file_kind_of(Document const& document) {
  auto const& all = Registry<FileKind>::all();
  auto const kind = std::ranges::find_if(all, [&](FileKind const& each) { return each.is(document); });
  return kind == all.end() ? nullptr : &*kind;
}

}  // namespace heed
