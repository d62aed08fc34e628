#pragma once

#include <functional>
#include <string>

#include "autograd/error.hpp"

namespace heed::test {

/// The message of the error of this kind that an action throws; "" if it throws none.
template <class E = Error>
std::string refusal(std::function<void()> const& action) {
  try {
    action();
  } catch (E const& error) {
    return error.what();
  }
  return "";
}

}  // namespace heed::test
