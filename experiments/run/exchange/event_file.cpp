#include "experiments/run/exchange/event_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "autograd/error.hpp"
#include "experiments/run/folder.hpp"
#include "experiments/run/record.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/input_file.hpp"

namespace heed {

namespace fs = std::filesystem;

namespace {

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

/// TensorBoard reads files whose names contain "tfevents", in the order of their names.
std::string name_of_file(double wall_time) {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host = {};
  return fmt::format("events.out.tfevents.{:010.0f}.{}.heed", std::floor(wall_time), file_label(host.data()));
}

/// The first event file in a folder, by name; nothing if there is none.
std::optional<fs::path> event_file_in(fs::path const& folder) {
  std::optional<fs::path> first;
  for (auto const& entry : fs::directory_iterator(folder)) {
    auto const name = entry.path().filename().string();
    if (name.starts_with("events.out.tfevents.") && name.ends_with(".heed") && (!first || entry.path() < *first)) first = entry.path();
  }
  return first;
}

}  // namespace

EventFile::EventFile(fs::path const& jsonl) {
  auto const folder = jsonl.parent_path();
  auto const rows = parse_rows(read_if_there(jsonl).value_or(""), jsonl.string());
  auto const there = event_file_in(folder);
  path_ = there ? *there : folder / name_of_file(now());
  EventReader reader(there ? read_file(path_) : "", path_.string());
  std::size_t length = reader.end(), kept = 0;
  for (; kept < rows.size(); ++kept) {
    auto const timed = reader.next();
    if (!timed || timed->row.step != rows[kept].step) break;
    length = reader.end();
  }
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644);
  if (descriptor_ < 0) fail();
  try {
    auto const end = static_cast<off_t>(length);
    if (::ftruncate(descriptor_, end) != 0 || ::lseek(descriptor_, end, SEEK_SET) != end) fail();
    if (length == 0) append(version_record(now()));
    for (; kept < rows.size(); ++kept) write(rows[kept]);
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

EventFile::~EventFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void EventFile::write(Row const& row) { append(scalars_record({now(), row})); }

void EventFile::sync() {
  if (flush_content(descriptor_) != 0 && errno != EINVAL) fail();
}

void EventFile::append(std::string_view bytes) {
  if (write_all(descriptor_, bytes) != 0) fail();
}

void EventFile::fail() const { throw Error(fmt::format("{}: cannot be written: {}", path_.string(), std::strerror(errno))); }

void write_event_file(fs::path const& folder, std::vector<TimedRow> const& rows) {
  double const begin = rows.empty() ? now() : rows.front().wall_time;
  AtomicFile file(folder / name_of_file(begin));
  file.write(version_record(begin));
  for (auto const& timed : rows) file.write(scalars_record(timed));
  file.commit();
}

}  // namespace heed
