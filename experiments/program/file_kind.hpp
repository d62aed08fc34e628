#pragma once

#include <algorithm>
#include <memory>
#include <string>

#include "autograd/registry.hpp"
#include "experiments/config/config.hpp"
#include "experiments/program/failure.hpp"
#include "experiments/program/run_options.hpp"

namespace heed {

/// A kind of file for `heed run` and `heed check` other than that of a run or an ablation, declared in its own folder.
struct FileKind {
  std::string name;  ///< the key that identifies such files: "study"
  bool (*is)(Document const& document);
  Exit (*run)(RunOptions const& options);
  Exit (*check)(RunOptions const& options);
  std::unique_ptr<Settings> (*settings)();  ///< default settings of a whole file, for its schema; null: it has keys of an ablation, too
  Exit (*plan)(RunOptions const& options) = nullptr;  ///< `heed plan`; null: there is nothing to plan
};
/// The kind of a file; null: none of these.
inline FileKind const* file_kind_of(Document const& document) {
  auto const& all = Registry<FileKind>::all();
  auto const kind = std::ranges::find_if(all, [&](FileKind const& each) { return each.is(document); });
  return kind == all.end() ? nullptr : &*kind;
}

}  // namespace heed
