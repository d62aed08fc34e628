#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <type_traits>
#include <utility>
#include <vector>

namespace heed {

/// A number of elements, rows or steps, or the index of one.
using Index = std::int64_t;

/// v[i]: the containers of the standard library count without signs; i may be an enumerator too.
template <class Container, class IndexOrEnum>
requires std::is_integral_v<IndexOrEnum> || std::is_enum_v<IndexOrEnum>
[[gnu::always_inline]] constexpr decltype(auto) at(Container&& v, IndexOrEnum i) { return v[static_cast<std::size_t>(i)]; }

template <class Count>
requires std::is_integral_v<Count>
constexpr double to_double(Count count) { return static_cast<double>(count); }

/// f of each element, or a member of it: mapped(arms, &Arm::name).
template <class Range, class F>
auto mapped(Range const& range, F const& f) {
  std::vector<std::remove_cvref_t<decltype(std::invoke(f, *std::begin(range)))>> all;
  for (auto const& each : range) all.push_back(std::invoke(f, each));
  return all;
}

/// While it lives, a variable has another value; then the earlier one.
template <class T>
class Temporarily {
 public:
  Temporarily(T& variable, T value) : variable_(variable), before_(std::exchange(variable, std::move(value))) {}
  ~Temporarily() { variable_ = before_; }
  Temporarily(Temporarily const&) = delete;
  Temporarily& operator=(Temporarily const&) = delete;

 private:
  T& variable_;
  T before_;
};

}  // namespace heed
