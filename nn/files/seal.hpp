#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace heed {

/// A file is sealed if it holds, as the value of this name in its JSON, the SHA-256 of all its bytes with zeros in the digest's place. A
/// byte that changes anywhere is seen by whoever reads the file. A file without that name is not sealed, and nothing is known of it.
inline constexpr std::string_view seal_name = "file_sha256";

/// What stands in the digest's place until it is known: 64 zeros.
std::string open_seal();

/// Where the 64 digits stand in a JSON text; nothing if there are none.
std::optional<std::size_t> find_seal(std::string_view text);

/// The JSON text, which holds an open seal, with its own digest. Throws Error if it holds none.
std::string sealed(std::string text);

/// Whether a JSON text is one that sealed() gave, or is not sealed at all.
bool seal_holds(std::string const& text);

}  // namespace heed
