#include "nn/batch.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/error.hpp"
#include "autograd/ops/index.hpp"

namespace heed {

Batch::Batch(std::initializer_list<BatchPart> parts) {
  for (auto const& [name, value] : parts) set(name, value);
}

Tensor const* Batch::find(std::string_view name) const {
  auto const found = std::ranges::find(parts_, name, &BatchPart::first);
  return found == parts_.end() ? nullptr : &found->second;
}

Tensor const& Batch::operator[](std::string_view name) const {
  if (auto const* const part = find(name)) return *part;
  auto const names = fmt::format("{}", fmt::join(mapped(parts_, &BatchPart::first), ", "));
  throw Error(fmt::format("a batch has no '{}'; it has {}", name, names.empty() ? "nothing" : names));
}

Tensor Batch::get(std::string_view name) const {
  auto const* const part = find(name);
  return part != nullptr ? *part : Tensor();
}

Batch Batch::first(Index count) const {
  if (count >= rows()) return *this;
  Batch some;
  for (auto const& [name, value] : parts_) some.set(name, value.rows(0, count));
  return some;
}

Batch Batch::chosen(std::span<Index const> rows) const {
  Batch some;
  for (auto const& [name, value] : parts_) some.set(name, take(value, rows));
  return some;
}

void Batch::set(std::string_view name, Tensor value) {
  auto const found = std::ranges::find(parts_, name, &BatchPart::first);
  if (found == parts_.end()) {
    if (value.defined()) parts_.emplace_back(name, std::move(value));
  } else if (value.defined()) {
    found->second = std::move(value);
  } else {
    parts_.erase(found);
  }
}

}  // namespace heed
