#include "experiments/run/exchange/pickle.hpp"

#include <bit>
#include <limits>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "nn/files/zip.hpp"

namespace heed {

namespace {

/// A module's object by its name.
std::string global(std::string_view module, std::string_view name) { return fmt::format("c{}\n{}\n", module, name); }

}  // namespace

Pickle Pickle::text(std::string_view utf8) { return Pickle("X" + little_endian(utf8.size(), 4) + std::string(utf8)); }

Pickle Pickle::integer(std::int64_t value) {
  bool const small = value >= std::numeric_limits<std::int32_t>::min() && value <= std::numeric_limits<std::int32_t>::max();
  auto const bits = static_cast<std::uint64_t>(value);
  return Pickle(small ? "J" + little_endian(bits, 4) : "\x8a\x08" + little_endian(bits, 8));
}

Pickle Pickle::real(double value) {
  std::string const bytes = little_endian(std::bit_cast<std::uint64_t>(value), 8);
  return Pickle("G" + std::string(bytes.rbegin(), bytes.rend()));
}

Pickle Pickle::truth(bool value) { return Pickle(value ? "\x88" : "\x89"); }

Pickle Pickle::dictionary(std::vector<std::pair<Pickle, Pickle>> const& entries) {
  std::string code = "}(";
  for (auto const& [key, value] : entries) code += key.code_ + value.code_;
  return Pickle(code + "u");
}

Pickle Pickle::tuple(std::vector<Pickle> const& items) {
  std::string code = "(";
  for (auto const& item : items) code += item.code_;
  return Pickle(code + "t");
}

Pickle Pickle::tensor(Shape const& shape, DType dtype, std::string_view storage) {
  std::string const kind = dtype == DType::float32 ? "FloatStorage" : dtype == DType::float64 ? "DoubleStorage" : "LongStorage";
  Pickle const persistent = tuple({text("storage"), Pickle(global("torch", kind)), text(storage), text("cpu"), integer(shape.elements())});
  std::vector<Pickle> extents, strides;
  std::int64_t below = shape.elements();
  for (std::int64_t const extent : shape) {
    below /= std::max<std::int64_t>(extent, 1);
    extents.push_back(integer(extent));
    strides.push_back(integer(below));
  }
  Pickle const no_hooks(global("collections", "OrderedDict") + ")R");
  return Pickle(global("torch._utils", "_rebuild_tensor_v2") +
                tuple({Pickle(persistent.code_ + "Q"), integer(0), tuple(extents), tuple(strides), truth(false), no_hooks}).code_ + "R");
}

}  // namespace heed
