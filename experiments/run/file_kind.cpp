#include "experiments/run/file_kind.hpp"

#include <algorithm>

namespace heed {

namespace {

std::vector<FileKind>& declared_file_kinds() {
  static std::vector<FileKind> all;
  return all;
}

}  // namespace

DeclaredFileKind::DeclaredFileKind(FileKind kind) { declared_file_kinds().push_back(std::move(kind)); }

std::vector<FileKind> const& file_kinds() { return declared_file_kinds(); }

FileKind const* file_kind_of(Document const& document) {
  auto const& all = file_kinds();
  auto const kind = std::ranges::find_if(all, [&](FileKind const& each) { return each.is(document); });
  return kind == all.end() ? nullptr : &*kind;
}

}  // namespace heed
