#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace heed {

/// A run's rows by metric: (step, value), in order.
using History = std::map<std::string, std::vector<std::pair<std::int64_t, double>>>;

/// metrics.jsonl of a run; a torn last line is left out. Throws FileError if there is none, a row is damaged, or its rows are not those of
/// the finished run (check_written).
History read_history(std::filesystem::path const& folder);

/// The step whose weights a finished run has kept instead of the last (train.keep: best); nothing if it has kept these.
std::optional<std::int64_t> kept_step(std::filesystem::path const& folder);

/// The step of the last whole row on disk, by a look at the end of the file only; nothing if there is none yet.
std::optional<std::int64_t> last_step(std::filesystem::path const& folder);

}  // namespace heed
