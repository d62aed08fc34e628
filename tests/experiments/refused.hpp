#pragma once

#include <sys/stat.h>

#include "autograd/index.hpp"
#include "tests/program.hpp"

// Tables of what is wrong with a user's files, and how the program must refuse them: in one line that says where and what, with the exit
// code that belongs to it. One function goes through each table.

namespace heed::test {

using Words = std::vector<std::string>;

/// What stands in a file's place: these bytes, or what a function puts there.
struct Damage {
  Damage(char const* bytes) : Damage(std::string(bytes)) {}
  Damage(std::string bytes) : make([bytes = std::move(bytes)](auto const& path) { put(path, bytes); }) {}
  Damage(std::function<void(std::filesystem::path const&)> function) : make(std::move(function)) {}
  /// Damages a file; its folder may be missing.
  void operator()(std::filesystem::path const& path) const {
    std::filesystem::create_directories(path.parent_path());
    make(path);
  }

  std::function<void(std::filesystem::path const&)> make;
};

/// In the place of what was there, a folder and all that is in it included: nothing, an empty folder, a pipe, a link.
inline Damage const gone = std::function([](std::filesystem::path const& path) { std::filesystem::remove_all(path); });
inline Damage instead(std::function<void(std::filesystem::path const&)> const& create) {
  return std::function([create](std::filesystem::path const& path) {
    std::filesystem::remove_all(path);
    create(path);
  });
}
inline Damage const folder_there = instead([](auto const& path) { std::filesystem::create_directory(path); });
inline Damage const pipe_there = instead([](auto const& path) { REQUIRE(::mkfifo(path.c_str(), 0600) == 0); });
inline Damage link_to(std::string const& target) {
  return instead([target](auto const& path) { std::filesystem::create_symlink(target, path); });
}
/// The first half of it.
inline Damage const half =
    std::function([](std::filesystem::path const& path) { std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2); });

/// A line of the configuration, in the place of a good one, and what the program says beside the file's path.
struct BadLine {
  std::size_t line;
  std::string text;
  Words words;
  int code = 2;
};
/// Of a file, likewise.
struct BadFile {
  Damage damage;
  Words words;
  std::vector<std::string> arguments = {};  ///< more of the command line
  int code = 3;
};

/// A folder with the configuration bad.yaml of a run, whose lines are good.
struct GoodRun {
  explicit GoodRun(std::vector<std::string> good) : lines(std::move(good)) { put(folder / "bad.yaml", with()); }
  std::string at(std::string const& name) const { return (folder / name).string(); }
  /// The configuration, with another line in the place of one.
  std::string with(std::size_t line = 0, std::string const& text = "") const {
    std::string all;
    for (std::size_t i = 1; i <= lines.size(); ++i) all += (i == line ? text : lines[i - 1]) + "\n";
    return all;
  }
  std::vector<std::string> command(std::vector<std::string> const& more = {}) const {
    return joined({"run", at("bad.yaml"), "--output", output.string(), "--threads", "1", "--quiet"}, more);
  }
  /// A run is refused, and makes no folder.
  void refuses(Words words, int code, std::string const& path, std::vector<std::string> const& more = {}) const {
    words.push_back(path);
    test::refuses(command(more), code, words);
    CHECK(!std::filesystem::exists(run));
  }
  void refuses_lines(std::vector<BadLine> const& rows) const {
    for (BadLine const& row : rows) {
      CAPTURE(row.text);
      put(folder / "bad.yaml", with(row.line, row.text));
      refuses(row.words, row.code, row.code == 2 ? at("bad.yaml:") : at(""));
    }
  }
  /// With this line in the configuration, whatever becomes of the file.
  void refuses_files(std::size_t line, std::string const& text, std::string const& file, std::vector<BadFile> const& rows) const {
    put(folder / "bad.yaml", with(line, text));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      CAPTURE(i);
      rows[i].damage(folder / file);
      refuses(rows[i].words, rows[i].code, at(file), rows[i].arguments);
    }
  }

  Folder folder;
  std::vector<std::string> lines;
  std::filesystem::path output = folder / "runs", run = output / "bad";
};

}  // namespace heed::test
