#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autograd/tensor.hpp"

namespace heed {

/// A value in Python's pickle format, protocol 2 (PEP 307): what pickle.load and torch.load read back.
class Pickle {
 public:
  static Pickle text(std::string_view utf8);
  static Pickle integer(std::int64_t value);
  static Pickle real(double value);
  static Pickle truth(bool value);
  static Pickle dictionary(std::vector<std::pair<Pickle, Pickle>> const& entries);
  /// A tensor as torch.save writes it: the whole of a storage that lies beside the pickle, by this name.
  static Pickle tensor(Shape const& shape, DType dtype, std::string_view storage);

  /// The whole file.
  std::string file() const { return "\x80\x02" + code_ + "."; }

 private:
  explicit Pickle(std::string code) : code_(std::move(code)) {}
  static Pickle tuple(std::vector<Pickle> const& items);

  std::string code_;  // leaves the value on the reader's stack
};

}  // namespace heed
