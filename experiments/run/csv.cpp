#include "experiments/run/csv.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "autograd/error.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/input_file.hpp"

namespace heed {

namespace fs = std::filesystem;

std::string csv_field(std::string const& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string result = "\"";
  for (char const c : text) result += c == '"' ? "\"\"" : std::string(1, c);
  return result + '"';
}

std::string csv_line(std::vector<std::string> const& fields) {
  std::string line;
  for (auto const& field : fields) line += csv_field(field) + ',';
  if (line.empty()) return "\n";
  line.back() = '\n';
  return line;
}

std::vector<std::vector<std::string>> parse_csv(std::string_view text) {
  std::vector<std::vector<std::string>> lines;
  bool quoted = false, fresh = true;  // fresh: the next character begins a line
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (fresh) lines.push_back({""});
    fresh = false;
    auto& field = lines.back().back();
    char const c = text[i];
    if (quoted) {
      if (c != '"')
        field += c;
      else if (i + 1 < text.size() && text[i + 1] == '"')
        field += text[++i];
      else
        quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      lines.back().emplace_back();
    } else if (c == '\n') {
      fresh = true;
    } else if (c != '\r') {
      field += c;
    }
  }
  return lines;
}

MetricsTable::MetricsTable(fs::path jsonl) : jsonl_(std::move(jsonl)), csv_(fs::path(jsonl_).replace_extension(".csv")) { rewrite(); }

MetricsTable::~MetricsTable() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::string MetricsTable::line(Row const& row) const {
  std::vector<std::string> fields(columns_.size());
  for (auto const& [name, value] : row.values) {
    fields[columns_.at(name)] = std::isnan(value) ? "NaN" : fmt::format("{}", value);
  }
  std::string text = std::to_string(row.step);
  for (auto const& field : fields) text += ',' + field;
  return text + '\n';
}

void MetricsTable::write(Row const& row) {
  bool const known = std::ranges::all_of(row.values, [&](auto const& value) { return columns_.contains(value.first); });
  if (!known) return rewrite();
  auto const text = line(row);
  if (write_all(descriptor_, text) != 0) fail();
}

void MetricsTable::rewrite() {
  auto const rows = parse_rows(read_if_there(jsonl_).value_or(""), jsonl_.string());
  std::vector<std::string> head{"step"};
  columns_.clear();
  for (Row const& row : rows)
    for (auto const& [name, value] : row.values)
      if (columns_.emplace(name, columns_.size()).second) head.push_back(name);
  AtomicFile table(csv_);
  table.write(csv_line(head));
  for (Row const& row : rows) table.write(line(row));
  table.commit();
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = ::open(csv_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (descriptor_ < 0) fail();
}

void MetricsTable::fail() const { throw Error(fmt::format("{}: cannot be written: {}", csv_.string(), std::strerror(errno))); }

}  // namespace heed
