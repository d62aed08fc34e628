// TensorBoard's event files: records of TFRecord (little-endian length of 8 bytes, its masked CRC-32C, data, their masked CRC-32C), each an
// Event in protobuf's wire format (tensorboard/compat/proto/{event,summary}.proto). And `heed export RUN… --format tensorboard`.

#include "experiments/exchange/tensorboard.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <sys/stat.h>

#include "autograd/error.hpp"
#include "autograd/registry.hpp"
#include "experiments/config/yaml.hpp"
#include "experiments/exchange/formats.hpp"
#include "experiments/folder/record.hpp"
#include "nn/files/npz.hpp"

namespace heed {

namespace fs = std::filesystem;

namespace {

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

/// How a field's value is stored (protobuf's encoding, "Message structure").
enum class WireType : unsigned { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

std::string key_of(unsigned field, WireType type) { return varint(field << 3 | static_cast<unsigned>(type)); }

/// A field that holds a text or a message.
std::string bytes_field(unsigned field, std::string_view content) {
  return key_of(field, WireType::bytes) + varint(content.size()) + std::string(content);
}

std::string masked_crc(std::string_view bytes) { return little_endian(std::rotr(crc32c(bytes), 15) + 0xa282ead8U, 4); }

/// The record of an Event: wall_time (field 1), step (2), and what happened.
std::string record_of(double wall_time, Index step, std::string const& what) {
  std::string event = key_of(1, WireType::fixed64) + little_endian(std::bit_cast<std::uint64_t>(wall_time), 8);
  if (step != 0) event += key_of(2, WireType::varint) + varint(static_cast<std::uint64_t>(step));  // protobuf does not store default values
  event += what;
  std::string const length = little_endian(event.size(), 8);
  return length + masked_crc(length) + event + masked_crc(event);
}

/// A value of a Summary (field 1): tag (1), simple_value (2).
std::string scalar(std::string name, double number) {
  if (auto const dot = name.find('.'); dot != std::string::npos) name[dot] = '/';
  auto const bits = std::bit_cast<std::uint32_t>(static_cast<float>(number));
  return bytes_field(1, bytes_field(1, name) + key_of(2, WireType::fixed32) + little_endian(bits, 4));
}

/// Writes a run's rows with estimated times of recording. time.seconds counts training only, over all calls; the last row gets the file's
/// modification time. A row without time.seconds gets the time of the row before.
void write_events(fs::path const& run, fs::path const& target) {
  auto const rows = read_rows(run);
  struct stat status {};
  ::stat((run / "metrics.jsonl").c_str(), &status);
  std::vector<double> times;
  for (Row const& row : rows) {
    double const* const seconds = row.find("time.seconds");
    times.push_back(seconds != nullptr && std::isfinite(*seconds) ? *seconds : times.empty() ? 0 : times.back());
  }
  double const begin = static_cast<double>(status.st_mtime) - (times.empty() ? 0 : times.back());
  fs::create_directories(target);
  EventFile file(target, 0, begin);
  for (std::size_t i = 0; i < rows.size(); ++i) file.write(rows[i], begin + times[i]);
}

/// The trials of an ablation that have rows, sorted by name; without those moved aside.
std::vector<fs::path> trials_in(fs::path const& ablation) {
  std::vector<fs::path> trials;
  for (auto const& entry : fs::directory_iterator(ablation)) {
    bool const put_aside = entry.path().filename().string().find(".old-") != std::string::npos;
    if (!put_aside && kind_of_results(entry.path()) == "run") trials.push_back(entry.path());
  }
  std::ranges::sort(trials);
  return trials;
}

/// The name of a folder, also for the path ".".
fs::path last_name(fs::path const& folder) { return fs::canonical(folder).filename(); }

void write_tensorboard(std::vector<fs::path> const& folders, fs::path const& target) {
  std::set<fs::path> names;
  auto const add = [&](fs::path const& run, fs::path const& name) {
    if (!names.insert(name).second) throw ConfigError(run.string(), fmt::format("there are two runs of the name '{}'", name.string()));
    write_events(run, target / name);
  };
  for (auto const& folder : folders) {
    if (kind_of_results(folder) == "run") add(folder, last_name(folder));
    if (kind_of_results(folder) != "ablation") continue;
    auto const above = folders.size() > 1 ? last_name(folder) : fs::path();
    for (auto const& trial : trials_in(folder)) add(trial, above / trial.filename());
  }
}

Declared<ResultFormat> const tensorboard_format{{.name = "tensorboard",
                                                 .help = "a folder of event files for TensorBoard",
                                                 .of = {"run", "ablation"},
                                                 .several = true,
                                                 .folder = true,
                                                 .write = write_tensorboard}};

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (char const byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82f63b78U : 0U);  // 0x1EDC6F41 with its bits reversed
  }
  return ~crc;
}

double wall_time_now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

// TensorBoard reads files whose names contain "tfevents", in the order of their names.
EventFile::EventFile(fs::path const& folder, Index step, double wall_time)
    : path_(folder / fmt::format("events.out.tfevents.{:017.6f}.heed", wall_time)), file_(path_, std::ios::binary) {
  append(record_of(wall_time, 0, bytes_field(3, "brain.Event:2")));                             // file_version
  append(record_of(wall_time, step, bytes_field(7, key_of(1, WireType::varint) + varint(1))));  // session_log, its status START
}

void EventFile::write(Row const& row, double wall_time) {
  std::string summary;
  for (auto const& [name, number] : row.values) summary += scalar(name, number);
  append(record_of(wall_time, row.step, bytes_field(5, summary)));
}

void EventFile::append(std::string_view bytes) {
  if (!(file_ << bytes).flush()) throw Error(fmt::format("{}: cannot be written: {}", path_.string(), std::strerror(errno)));
}

}  // namespace heed
