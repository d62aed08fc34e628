#include "nn/files/seal.hpp"

#include <span>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "nn/files/sha256.hpp"

namespace heed {

namespace {

constexpr std::size_t digits = 64;

std::string digest_with_open_seal(std::string text, std::size_t at) {
  text.replace(at, digits, open_seal());
  return sha256(std::as_bytes(std::span(text)));
}

}  // namespace

std::string open_seal() { return std::string(digits, '0'); }

std::optional<std::size_t> find_seal(std::string_view text) {
  for (char const* const colon : {":\"", ": \""}) {  // of compact and of indented JSON; a quote inside a text has a backslash before it
    std::string const name = fmt::format("\"{}\"{}", seal_name, colon);
    auto const found = text.rfind(name);
    if (found == text.npos || text.size() < found + name.size() + digits + 1) continue;
    auto const at = found + name.size();
    if (text.substr(at, digits).find_first_not_of("0123456789abcdef") == text.npos && text[at + digits] == '"') return at;
  }
  return std::nullopt;
}

std::string sealed(std::string text) {
  auto const at = find_seal(text);
  if (!at) throw Error(fmt::format("a text without \"{}\" cannot be sealed", seal_name));
  return text.replace(*at, digits, digest_with_open_seal(text, *at));
}

bool seal_holds(std::string const& text) {
  auto const at = find_seal(text);
  return !at || digest_with_open_seal(text, *at) == text.substr(*at, digits);
}

}  // namespace heed
