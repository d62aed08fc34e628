#pragma once

#include <nlohmann/json.hpp>

#include "tests/folder.hpp"

// The JSON that the program writes, for tests to read and to change. This header is precompiled: the library is costly to read.

namespace heed::test {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;  ///< keys stay in their order

template <class J = Json>
J json_of(std::filesystem::path const& file) {
  return J::parse(get(file));
}

/// The values of a file with one JSON text per line.
template <class J = Json>
std::vector<J> json_rows(std::filesystem::path const& file) {
  std::vector<J> rows;
  for (auto const& line : lines_of(get(file))) rows.push_back(J::parse(line));
  return rows;
}

inline Json summary_of(std::filesystem::path const& run) { return json_of(run / "summary.json"); }

/// Writes a file anew with what is changed in its value.
inline void change_json(std::filesystem::path const& file, std::function<void(OrderedJson&)> const& change) {
  auto json = json_of<OrderedJson>(file);
  change(json);
  put(file, json.dump(2));
}

/// Makes a folder's summary.json one of an earlier revision, which says no hashes: a test may then change what it likes.
inline void unseal(std::filesystem::path const& folder) {
  change_json(folder / "summary.json", [](OrderedJson& summary) {
    for (char const* const hashes : {"files", "file_sha256"}) summary.erase(hashes);
  });
}

}  // namespace heed::test

// Compiled once, in main.cpp: a fifth of a suite's code.
extern template class nlohmann::basic_json<>;
extern template class nlohmann::basic_json<nlohmann::ordered_map>;
