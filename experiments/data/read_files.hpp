#pragma once

#include <map>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace heed {

/// A file and its content's SHA-256, as summary.json keeps them.
struct HashedFile {
  std::string file, sha256;
};

/// The files that something was read from, as they were then, by what each is to the reader: "text", "training.source", "init.from".
using ReadFiles = std::map<std::string, HashedFile>;

/// {"text": {"file": …, "sha256": …}, …}, and back. What is no such object is left out.
nlohmann::json to_json(ReadFiles const& files);
ReadFiles read_files_of(nlohmann::json const& json);

/// The first that both have with another content, in words: "text: words.txt had SHA-256 3f…, and words.txt has a1…"; nothing if there
/// is none. Where a file lies does not matter.
std::optional<std::string> changed(ReadFiles const& before, ReadFiles const& now);

}  // namespace heed
