#pragma once

#include <span>
#include <string_view>

namespace heed {

/// An operation as `heed list operations` prints it.
struct OperationInfo {
  std::string_view name;
  std::string_view formula;  ///< "tanh x"
};

/// Every operation, by name. A part of one whose formula differs has a row of its own: "fused_attention with dropout".
std::span<OperationInfo const> operations();

}  // namespace heed
