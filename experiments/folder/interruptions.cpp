#include "experiments/folder/interruptions.hpp"

#include <nlohmann/json.hpp>

#include "autograd/error.hpp"
#include "experiments/folder/result_file.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/json.hpp"

namespace heed {

namespace {

constexpr char const* file_name = "interruptions.json";

}  // namespace

Interruptions interruptions_of(std::filesystem::path const& folder) try {
  auto record = find_json(folder / file_name);
  if (!record) {
    auto const summary = find_json(folder / "summary.json");
    if (summary && summary->is_object() && summary->contains("interruptions")) record = (*summary)["interruptions"];
  }
  if (!record || !record->is_object()) return {};
  return {record->value("preempted", Index{0}), record->value("timed_out", Index{0})};
} catch (Error const&) {
  return {};
} catch (nlohmann::json::exception const&) {  // values of other types
  return {};
}

void record_interruption(std::filesystem::path const& folder, StopReason reason) try {
  if (reason == StopReason::asked) return;
  Interruptions counts = interruptions_of(folder);
  ++(reason == StopReason::preempted ? counts.preempted : counts.timed_out);
  write_atomically(folder / file_name, json_text(as_json(counts), 2) + "\n");
} catch (Error const&) {
}

nlohmann::ordered_json as_json(Interruptions const& counts) { return {{"preempted", counts.preempted}, {"timed_out", counts.timed_out}}; }

void forget_interruptions(std::filesystem::path const& folder) {
  std::error_code ignored;
  std::filesystem::remove(folder / file_name, ignored);
}

}  // namespace heed
