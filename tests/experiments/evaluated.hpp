#pragma once

#include "tests/experiments/said.hpp"
#include "tests/json.hpp"

namespace heed::test {

/// The results that `heed evaluate MODEL …` saves.
inline Json evaluated(Folder const& folder, std::filesystem::path const& model, std::vector<std::string> const& more) {
  auto const file = folder / "results.json";
  run_well(joined({"evaluate", model, "--quiet", "--save", file}, more));
  return json_of(file);
}

inline double loss_of(Json const& results) { return results.at("metrics").at("loss").get<double>(); }

/// Token ids as `--ids` reads them.
inline void put_ids(std::filesystem::path const& path, std::vector<std::int32_t> const& ids) {
  put(path, std::string(reinterpret_cast<char const*>(ids.data()), ids.size() * sizeof(std::int32_t)));
}

}  // namespace heed::test
