#include "experiments/folder/record.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "autograd/blas/products.hpp"
#include "autograd/error.hpp"
#include "autograd/parallel.hpp"
#include "autograd/processor/processor.hpp"
#include "experiments/config/build_info.hpp"
#include "experiments/folder/result_file.hpp"
#include "experiments/program/system.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/input_file.hpp"

namespace heed {

namespace fs = std::filesystem;

namespace {

/// The row in a line of a file. Throws FileError if it is damaged, or not of a later step than the row before.
Row row_after(Index before, std::string const& line, fs::path const& path, Index line_number) {
  std::string const location = fmt::format("{}:{}", path.string(), line_number);
  Row row = parse_row(line, location);
  if (row.step <= before) throw FileError(fmt::format("{}: step {} after step {}", location, row.step, before));
  return row;
}

}  // namespace

Metrics::Metrics(fs::path path, Index step, std::function<void(Row const&)> const& see) : path_(std::move(path)) {
  if (fs::is_directory(path_)) errno = EISDIR, fail();
  kept_ = read_if_there(path_).value_or("");
  std::istringstream file(kept_);
  std::size_t length = 0;
  Index line_number = 0;
  for (std::string line; std::getline(file, line);) {
    ++line_number;
    if (file.eof()) break;  // no line end: incomplete
    Row const row = row_after(last_step_, line, path_, line_number);
    if (row.step >= step) break;
    last_step_ = row.step;
    for (auto const& [name, value] : row.values)
      if (std::isfinite(value)) before_[name] = value;
    if (see) see(row);
    length += line.size() + 1;
  }
  kept_.resize(length);
}

void Metrics::open() {
  write_atomically(path_, std::exchange(kept_, ""));
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (descriptor_ < 0) fail();
}

double Metrics::before(std::string const& name) const { return before_.contains(name) ? before_.at(name) : 0; }

Metrics::~Metrics() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void Metrics::write(Row const& row) {
  std::string const line = to_json(row) + "\n";
  if (write_all(descriptor_, line) != 0) fail();
  last_step_ = row.step;
}

void Metrics::sync() {
  if (flush_content(descriptor_) != 0 && errno != EINVAL) fail();
}

void Metrics::fail() const { throw Error(fmt::format("{}: cannot be written: {}", path_.string(), std::strerror(errno))); }

nlohmann::ordered_json environment() {
  BuildInfo const& build = build_info();
  return {{"revision", build.revision}, {"dirty", build.dirty},          {"compiler", build.compiler}, {"build_type", build.build_type},
          {"flags", build.flags},       {"xtensor", build.xtensor},      {"xsimd", build.xsimd},       {"blas", matrix_library()},
          {"blas_path", build.blas},    {"processor", processor_name()}, {"threads", threads()},       {"system", system_name()}};
}

std::string numeric_environment() {
  BuildInfo const& build = build_info();
  return fmt::format("processor {}, {} threads, {}, {}, xsimd {}", processor_name(), threads(), matrix_library(), build.compiler,
                     build.xsimd);
}

std::vector<Row> read_rows(fs::path const& folder) {
  check_written(folder, "metrics.jsonl");
  auto const path = folder / "metrics.jsonl";
  std::istringstream file(read_file(path));
  std::vector<Row> rows;
  for (std::string line; std::getline(file, line);) {
    try {
      rows.push_back(row_after(rows.empty() ? -1 : rows.back().step, line, path, std::ssize(rows) + 1));
    } catch (FileError const&) {
      if (!file.eof()) throw;  // else the last line has no line end: incomplete
    }
  }
  return rows;
}

History read_history(fs::path const& folder) {
  History history;
  for (Row const& row : read_rows(folder))
    for (auto const& [name, value] : row.values) history[name].emplace_back(row.step, value);
  return history;
}

std::optional<Index> kept_step(fs::path const& folder) {
  auto const best = in_summary(folder, "best");
  if (!best.is_object() || !best.contains("step") || !best["step"].is_number_integer()) return std::nullopt;
  return best["step"].get<Index>();
}

std::optional<Index> last_step(fs::path const& folder) {
  if (!is_file(folder / "metrics.jsonl")) return std::nullopt;
  std::ifstream file(folder / "metrics.jsonl", std::ios::binary | std::ios::ate);
  if (!file) return std::nullopt;
  Index const size = file.tellg();
  for (Index window = 16384;; window *= 8) {  // longer than most rows; rows with many probes may be longer
    file.clear();
    file.seekg(std::max<Index>(0, size - window));
    std::string const tail(std::istreambuf_iterator<char>(file), {});
    if (auto const key = tail.rfind("{\"step\":"); key != std::string::npos) return std::atoll(tail.c_str() + key + 8);
    if (window >= size) return std::nullopt;
  }
}

}  // namespace heed
