#pragma once

#include "experiments/config/build_info.hpp"
#include "tests/test.hpp"

namespace heed::test {

/// Whether the program was built with this one of the rooms that can be left out (experiments/rooms.cmake).
inline bool has_room(std::string_view room) { return build_info().without.find(room) == std::string::npos; }

/// Whether the program refuses something for want of a room.
inline bool is_of_missing_room(std::string const& message) {
  return !built_without().empty() && message.find(built_without()) != std::string::npos;
}

/// Leaves a test case out where the program was built without a room that it needs: TEST_CASE("…" * test::needs("translation")).
inline doctest::skip needs(std::string_view room) { return {!has_room(room)}; }

}  // namespace heed::test
