#include "experiments/data/documents.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/data/files.hpp"
#include "nn/files/utf8.hpp"

namespace heed {

namespace fs = std::filesystem;

namespace {

std::vector<fs::path> files_in(fs::path const& folder) try {
  std::vector<fs::path> files;
  for (auto entry = fs::recursive_directory_iterator(folder); entry != fs::recursive_directory_iterator(); ++entry) {
    if (entry->path().filename().string().starts_with('.')) {
      entry.disable_recursion_pending();
      continue;
    }
    if (!entry->is_directory()) files.push_back(entry->path());
  }
  std::ranges::sort(files);
  return files;
} catch (fs::filesystem_error const& error) {
  throw FileError(fmt::format("{}: {}", folder.string(), error.code().message()));
}

/// A line without its end, from `begin` on, which moves behind it.
std::string_view next_line(std::string_view text, std::size_t& begin) {
  auto const end = std::min(text.find('\n', begin), text.size());
  auto line = text.substr(begin, end - begin);
  begin = end + 1;
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

/// Adds the documents of one file.
void add_documents(std::vector<std::string_view>& documents, std::string_view text, Separator const& separator, bool& found) {
  std::size_t first = 0;
  auto const add = [&](std::size_t end) {
    auto document = text.substr(first, end - first);
    if (document.ends_with('\n')) document.remove_suffix(1);
    if (document.ends_with('\r')) document.remove_suffix(1);
    if (!document.empty()) documents.push_back(document);
  };
  for (std::size_t begin = 0; begin < text.size();) {
    auto const start = begin;
    auto const line = next_line(text, begin);
    if (separator == "line") documents.push_back(line);
    if (separator == "line" || separator == "file") continue;
    bool const between = separator == "blank_line" ? line.find_first_not_of(" \t\v\f\r") == line.npos : line == separator;
    if (!between) continue;
    found = true;
    add(start);
    first = std::min(begin, text.size());
  }
  if (separator != "line") add(text.size());
}

}  // namespace

TextFiles read_text_files(fs::path const& path) {
  std::error_code unreadable;
  if (!fs::is_directory(path, unreadable)) return {read_text(path), {0}};
  TextFiles all;
  for (auto const& file : files_in(path)) {
    auto const text = read_text(file);
    all.begins.push_back(all.content.size());
    all.content += without_byte_order_mark(text);
    if (!all.content.ends_with('\n')) all.content += '\n';
  }
  if (all.begins.empty()) throw FileError(fmt::format("{}: is a directory without files", path.string()));
  return all;
}

std::vector<std::string_view> documents_of(std::string_view text, std::vector<std::size_t> const& file_begins, Separator const& separator) {
  if (separator == "none") return {text};
  std::vector<std::string_view> documents;
  bool found = false;
  for (std::size_t i = 0; i < file_begins.size(); ++i) {
    auto const end = i + 1 < file_begins.size() ? file_begins[i + 1] : text.size();
    add_documents(documents, text.substr(file_begins[i], end - file_begins[i]), separator, found);
  }
  std::vector<std::string> const words{"none", "file", "line", "blank_line"};
  if (!found && std::ranges::find(words, separator) == words.end())
    throw Error(fmt::format("no line is data.separator, '{}'{}; {}, {}, {} and {} name other separators", separator,
                            did_you_mean(separator, words), words[0], words[1], words[2], words[3]));
  return documents;
}

}  // namespace heed
