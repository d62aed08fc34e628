#include "nn/files/atomic_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nn/files/safetensors.hpp"
#include "tests/folder.hpp"
#include "tests/nn/full_disk.hpp"
#include "tests/refusal.hpp"

using namespace heed;
using test::get, test::put;
namespace fs = std::filesystem;
using Names = std::vector<std::string>;

namespace {

struct OneFile {
  test::Folder const folder;
  fs::path const path = folder / "f";
};

/// The message of an error that is no fault of what is read.
std::string refusal(std::function<void()> const& action) {
  return test::refusal([&] {
    auto const fault = test::refusal<FileError>(action);
    CHECK(fault == "");
  });
}

/// Starts a process that does this and ends.
pid_t started(std::function<void()> const& action) {
  pid_t const child = ::fork();
  REQUIRE(child >= 0);
  if (child != 0) return child;
  try {
    action();
  } catch (...) {
    ::_exit(1);
  }
  ::_exit(0);
}

}  // namespace

TEST_SUITE("atomic_file") {
  TEST_CASE_FIXTURE(OneFile, "the old content stays until commit, then the new is there, and nothing else") {
    write_atomically(path, "old");
    CHECK(get(path) == "old");
    {
      AtomicFile file(path);
      file.write("new ");
      file.write("content");
      CHECK(get(path) == "old");
      file.commit();
      CHECK(get(path) == "new content");
    }
    CHECK(get(path) == "new content");
    write_atomically(path, "");
    CHECK(get(path) == "");
    CHECK(folder.names() == Names{"f"});
  }

  TEST_CASE_FIXTURE(OneFile, "without a commit nothing has happened") {
    put(path, "old");
    { AtomicFile(path).write("half"); }
    CHECK(get(path) == "old");
    CHECK(folder.names() == Names{"f"});
  }

  TEST_CASE_FIXTURE(OneFile, "a full disk: an error that says so, the old file whole, no temporary left") {
    save_safetensors(path, {{"x", Tensor::arange(3, DType::float64)}});
    auto const before = get(path);
    auto const large = Tensor::zeros({1 << 16}, DType::float64);
    for (auto const limit : std::vector<rlim_t>{0, 1, 8, 100, 4096, 100'000, 1 << 19}) {
      CAPTURE(limit);
      std::string message;
      {
        test::FullDisk const full(limit);
        message = refusal([&] { save_safetensors(path, {{"x", large}}); });
      }
      CHECK(message == path.string() + ": cannot be written: File too large");
      CHECK(get(path) == before);
      CHECK(folder.names() == Names{"f"});
    }
    save_safetensors(path, {{"x", large}});
    CHECK(SafetensorsFile(path).shape("x") == large.shape());
  }

  TEST_CASE_FIXTURE(OneFile, "targets that cannot be written") {
    auto const write = [](fs::path const& to) { return refusal([&] { write_atomically(to, "x"); }); };
    auto const says = [](fs::path const& to, std::string const& why) { return to.string() + ": cannot be written: " + why; };
    CHECK(write(folder / "no/f") == says(folder / "no/f", "No such file or directory"));
    put(folder / "file", "");
    CHECK(write(folder / "file/f") == says(folder / "file/f", "Not a directory"));
    fs::create_directory(folder / "folder");
    CHECK(write(folder / "folder") == says(folder / "folder", "Is a directory"));
    auto const long_name = folder / std::string(300, 'n');
    CHECK(write(long_name) == says(long_name, "File name too long"));
    fs::create_symlink(folder / "victim", folder / ".g.part");
    CHECK(write(folder / "g").empty());  // never through a link
    fs::remove(folder / ".g.part");
    fs::remove(folder / "g");
    CHECK(folder.names() == Names{"file", "folder"});

    auto const locked = folder / "folder/f";
    put(locked, "old");
    fs::permissions(folder.path(), fs::perms::all);
    fs::permissions(folder / "folder", fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_read | fs::perms::others_exec);
    bool const root = ::geteuid() == 0;
    if (root) REQUIRE(::seteuid(65534) == 0);  // nobody: root may write everywhere
    auto const message = write(locked);
    if (root) REQUIRE(::seteuid(0) == 0);
    fs::permissions(folder / "folder", fs::perms::all);
    CHECK(message == says(locked, "Permission denied"));
    CHECK(get(locked) == "old");
  }

  TEST_CASE_FIXTURE(OneFile, "a process killed on the way leaves the old file and a part, which does not disturb the next write") {
    put(path, "old");
    pid_t const child = started([&] {
      AtomicFile file(path);
      file.write("longer than what will be written next");
      ::raise(SIGKILL);
    });
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));
    CHECK(get(path) == "old");
    CHECK(folder.names() == Names{".f.part", "f"});
    write_atomically(path, "new");
    CHECK(get(path) == "new");
    remove_parts(folder.path());
    CHECK(folder.names() == Names{"f"});
  }

  TEST_CASE_FIXTURE(OneFile, "writers of one target do not disturb each other, and the last commit counts") {
    {
      AtomicFile first(path), second(path), third(path);
      first.write("first");
      second.write("second");
      third.write("third");
      second.commit();
      CHECK(get(path) == "second");
      first.commit();
    }
    CHECK(get(path) == "first");
    CHECK(folder.names() == Names{"f"});
    write_atomically(path, "fourth");
    CHECK(get(path) == "fourth");
  }

  TEST_CASE_FIXTURE(OneFile, "the parts in a folder are removed, and nothing else") {
    for (std::string const name : {".f.part", ".f.part-2", ".f.part-12", "f.part", ".f.part-", ".f.part-x", ".fpart", ".part-3x", ".lock"})
      put(folder / name, "");
    fs::create_directory(folder / ".g.part");
    remove_parts(folder.path());
    CHECK(folder.names() == Names{".f.part-", ".f.part-x", ".fpart", ".g.part", ".lock", ".part-3x", "f.part"});
    remove_parts(folder / "none");
  }

  TEST_CASE_FIXTURE(OneFile, "a device or a pipe is written to, and never replaced") {
    auto const full = folder / "full", pipe = folder / "pipe";
    if (::mknod(full.c_str(), S_IFCHR | 0666, makedev(1, 7)) == 0) {  // only root may
      CHECK(refusal([&] { write_atomically(full, "x"); }) == full.string() + ": cannot be written: No space left on device");
      CHECK(fs::is_character_file(full));
    }
    CHECK(refusal([&] { write_atomically("/dev/null", "x"); }).empty());
    CHECK(fs::is_character_file("/dev/null"));
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    CHECK(refusal([&] { write_atomically(pipe, "x"); }) == pipe.string() + ": cannot be written: a pipe or device that nobody reads");
    int const reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
    write_atomically(pipe, "content");
    char read[8] = "";
    CHECK(::read(reader, read, sizeof read) == 7);
    CHECK(std::string(read) == "content");
    ::close(reader);
    CHECK(fs::is_fifo(pipe));
  }

  TEST_CASE_FIXTURE(OneFile, "a link stays one: what it leads to is replaced") {
    fs::create_directory(folder / "there");
    fs::create_symlink("there/f", folder / "link");
    fs::create_symlink(folder / "link", folder / "there/back");
    write_atomically(folder / "link", "new");
    CHECK(get(folder / "there/f") == "new");
    write_atomically(folder / "there/back", "newer");
    CHECK(get(folder / "there/f") == "newer");
    CHECK(fs::is_symlink(folder / "link"));
    CHECK(folder.names() == Names{"link", "there"});
  }

  TEST_CASE_FIXTURE(OneFile, "a reader sees the old content or the new, whatever the moment") {
    std::string const a(200'000, 'a'), b(100'000, 'b');
    write_atomically(path, a);
    pid_t const writer = started([&] {
      for (int i = 0; i < 100; ++i) write_atomically(path, i % 2 ? a : b);
    });
    int status = 0, reads = 0;
    while (::waitpid(writer, &status, WNOHANG) == 0) {
      auto const seen = get(path);
      REQUIRE((seen == a || seen == b));
      ++reads;
    }
    CHECK(WIFEXITED(status));
    CHECK(reads > 0);
  }

  TEST_CASE_FIXTURE(OneFile, "a name without a folder is in the current one") {
    auto const before = fs::current_path();
    fs::current_path(folder.path());
    auto const message = refusal([] { write_atomically("f", "x"); });
    fs::current_path(before);
    CHECK(message == "");
    CHECK(get(folder / "f") == "x");
  }
}
