#include "nn/batch.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "autograd/error.hpp"
#include "autograd/ops/index.hpp"
#include "nn/files/json.hpp"

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

namespace {
constexpr Index max_classes = Index{1} << 40;
constexpr Index max_extent = 1 << 16;  // of a picture
/// The names of added tokens. Earlier revisions wrote their number, and there was one such token, [MASK].
std::vector<std::string> names_of(nlohmann::json const& added) {
  if (added.is_array()) return added;
  return std::vector<std::string>(added.get<std::size_t>() > 0 ? 1 : 0, "[MASK]");
}

}  // namespace

Index PartSpec::token(std::string_view wanted) const {
  auto const found = std::ranges::find(added, wanted);
  if (found == added.end()) throw Error(fmt::format("'{}' has no token {}", name, wanted));
  return classes - (added.end() - found);
}

bool Signature::has(std::string_view name) const { return std::ranges::find(parts_, name, &PartSpec::name) != parts_.end(); }

PartSpec const& Signature::operator[](std::string_view name) const {
  auto const found = std::ranges::find(parts_, name, &PartSpec::name);
  if (found == parts_.end()) throw Error(fmt::format("there is no '{}' in a batch; there are {}", name, names()));
  return *found;
}

void Signature::set(PartSpec part) {
  auto const found = std::ranges::find(parts_, part.name, &PartSpec::name);
  if (found == parts_.end())
    parts_.push_back(std::move(part));
  else
    *found = std::move(part);
}

void Signature::remove(std::string_view name) {
  std::erase_if(parts_, [&](PartSpec const& part) { return part.name == name; });
}

std::string Signature::text() const {
  auto parts = nlohmann::ordered_json::array();
  for (auto const& part : parts_) {
    parts.push_back({{"name", part.name},
                     {"classes", part.classes},
                     {"vocabulary", part.vocabulary},
                     {"longest", part.longest},
                     {"places", part.max_tokens},
                     {"added", part.added},
                     {"made_by", part.made_by},
                     {"shape", part.shape}});
    if (part.sequences > 1) parts.back()["sequences"] = part.sequences;
    if (!part.weights.empty()) parts.back()["weights"] = part.weights;
  }
  return json_text(parts);
}

Signature Signature::parse(std::string_view text, std::string const& what) try {
  std::vector<PartSpec> parts;
  for (auto const& part : parse_json<nlohmann::json>(text, what)) {
    parts.push_back({part.at("name"), part.at("classes"), part.at("vocabulary"), part.at("longest"), part.at("places"),
                     names_of(part.at("added")), part.at("made_by"), part.value("shape", std::vector<Index>()),
                     part.value("sequences", Index{1}), part.value("weights", std::vector<double>())});
    if (parts.back().classes < 1 || parts.back().classes > max_classes)
      throw FileError(fmt::format("{}: '{}' has {} classes", what, parts.back().name, parts.back().classes));
    if (std::ssize(parts.back().added) > parts.back().classes || parts.back().sequences < 1 || parts.back().sequences > max_extent)
      throw FileError(fmt::format("{}: '{}' has more added tokens than classes, or no sequences", what, parts.back().name));
    auto const& shape = parts.back().shape;
    bool const fits = std::ranges::all_of(shape, [](Index extent) { return extent >= 1 && extent <= max_extent; });
    if (!shape.empty() && (shape.size() != 3 || !fits))
      throw FileError(fmt::format("{}: the shape of '{}' is not channels, height and width", what, parts.back().name));
  }
  return Signature(std::move(parts));
} catch (nlohmann::json::exception const&) {
  throw FileError(fmt::format("{}: is not a list of parts of a batch", what));
}

std::string Signature::names() const { return fmt::format("{}", fmt::join(mapped(parts_, &PartSpec::name), ", ")); }

}  // namespace heed
