#include "experiments/run/claim.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string_view>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "autograd/error.hpp"
#include "experiments/run/system.hpp"
#include "nn/files/number.hpp"

namespace heed {

namespace fs = std::filesystem;

namespace {

// --- Heartbeats: a timer's signal handler sets the files' modification times, whatever the process is doing. Not a thread, because a
// process with threads cannot fork safely, and trials are forked.

constexpr std::size_t most_claims = 4096;
std::array<std::atomic<int>, most_claims> beating;  // descriptors + 1; 0: free
std::atomic<std::size_t> used = 0;                  // beating[used] and all after it are free
std::atomic<std::int64_t> last_beat = 0;            // seconds of a clock that also runs while the machine sleeps
std::atomic<std::int64_t> longest_gap = 0;          // a longer gap between beats, in seconds, puts claims in doubt
std::atomic<unsigned> late = 0;                     // number of such gaps
pid_t timer_of = -1;

std::int64_t seconds_now() {
#if defined(__linux__)
  constexpr clockid_t clock = CLOCK_BOOTTIME;
#else
  constexpr clockid_t clock = CLOCK_MONOTONIC;
#endif
  timespec now{};
  ::clock_gettime(clock, &now);
  return now.tv_sec;
}

extern "C" void beat(int) {
  int const before = errno;
  std::int64_t const now = seconds_now();
  for (std::size_t i = 0, end = used; i < end; ++i)
    if (int const file = beating[i]; file > 0) ::futimens(file - 1, nullptr);
  if (now - last_beat > longest_gap) ++late;  // counted after the beat, because a process that takes a claim over looks for a last beat
  last_beat = now;
  errno = before;
}

/// Starts heartbeats for a file in this process. A forked process inherits the list, but not the timer, and starts with an empty list.
void begin_beating(int file) {
  if (timer_of != ::getpid()) {
    for (auto& each : beating) each = 0;
    used = 0;
  }
  std::size_t i = 0;
  while (i < most_claims && beating[i] != 0) ++i;
  if (i == most_claims) throw Error("too many folders are held at once");
  beating[i] = file + 1;
  used = std::max<std::size_t>(used, i + 1);
  if (timer_of == ::getpid()) return;
  timer_of = ::getpid();
  last_beat = seconds_now();
  longest_gap = claim_lapses() / 2;
  struct sigaction action {};
  action.sa_handler = beat;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGALRM, &action, nullptr);
  itimerval timer{};
  auto const period = claim_lapses() * 1'000'000 / 6;
  timer.it_interval.tv_sec = period / 1'000'000;
  timer.it_interval.tv_usec = static_cast<suseconds_t>(period % 1'000'000);
  timer.it_value = timer.it_interval;
  ::setitimer(ITIMER_REAL, &timer, nullptr);
}

void end_beating(int file) {
  if (timer_of != ::getpid()) return;
  auto const found = std::ranges::find_if(beating, [&](auto const& each) { return each == file + 1; });
  if (found != beating.end()) *found = 0;
}

// --- Identity of this process, and whether others are alive.

std::string first_line(fs::path const& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

/// Equal for processes that can see each other: same machine, same boot, same container.
std::string machine() {
  std::error_code unknown;
  return fmt::format("{} {} {}", host_name(), first_line("/proc/sys/kernel/random/boot_id"),
                     fs::read_symlink("/proc/self/ns/pid", unknown).string());
}

/// When a process started, in ticks since boot; 0 if unknown, −1 for a zombie (a process that has ended, but that nobody has waited for).
/// Tells processes with the same id apart, because systems reuse ids.
std::int64_t began(std::int64_t process) {
  std::string const line = first_line(fmt::format("/proc/{}/stat", process));
  auto at = line.rfind(')');  // the name before it may contain anything
  if (at == line.npos) return 0;
  if (line.compare(at, 3, ") Z") == 0 || line.compare(at, 3, ") X") == 0) return -1;
  for (int field = 2; at != line.npos && field < 22; ++field) at = line.find(' ', at + 1);
  return at == line.npos ? 0 : std::atoll(line.c_str() + at + 1);
}

bool lives(std::int64_t process, std::int64_t since) {
  if (process <= 0 || (::kill(static_cast<pid_t>(process), 0) != 0 && errno == ESRCH)) return false;
  return began(process) == since;
}

std::string line_of(pid_t process) {
  return nlohmann::ordered_json{
             {"host", host_name()}, {"process", process}, {"began", began(process)}, {"machine", machine()}, {"lapses", claim_lapses()}}
             .dump() +
         "\n";
}

// --- Files of claims.

bool is_shared(std::string_view name) { return name.find(".claim-shared-") != name.npos; }

/// A file that is still being written, or whose process was killed while writing: not a claim.
bool is_part(std::string_view name) { return name.find(".claim-part-") != name.npos; }

struct ClaimFile {
  std::string name;
  ino_t inode = 0;
  double modified = 0;  ///< seconds since 1970, by the file system
  ClaimHolder holder;
};

double modified(struct stat const& status) {
#if defined(__APPLE__)
  return static_cast<double>(status.st_mtimespec.tv_sec) + 1e-9 * static_cast<double>(status.st_mtimespec.tv_nsec);
#else
  return static_cast<double>(status.st_mtim.tv_sec) + 1e-9 * static_cast<double>(status.st_mtim.tv_nsec);
#endif
}

/// The holder from a claim's text. Text that cannot be read, or is not written yet, counts as written by another machine.
ClaimHolder holder_in(std::string const& text, double silent) {
  ClaimHolder holder{.host = "unknown", .silent = silent, .lapses = claim_lapses()};
  bool living = false;
  try {
    auto const said = nlohmann::json::parse(text);
    holder.host = said.value("host", "unknown");
    holder.process = said.value("process", std::int64_t{0});
    holder.lapses = said.value("lapses", claim_lapses());
    holder.here = said.value("machine", "") == machine();
    living = holder.here && lives(holder.process, said.value("began", std::int64_t{0}));
  } catch (nlohmann::json::exception const&) {  // incomplete, or another type
  }
  holder.alive = holder.here ? living : silent < static_cast<double>(holder.lapses);
  return holder;
}

/// The claims of a base name in a folder. `now`: the file system's time, in seconds since 1970.
std::vector<ClaimFile> claims_in(fs::path const& folder, std::string const& base, double now) {
  std::vector<ClaimFile> claims;
  std::error_code gone;
  for (auto const& entry : fs::directory_iterator(folder, gone)) {
    std::string const name = entry.path().filename().string();
    struct stat status {};
    if (!name.starts_with(base) || ::stat(entry.path().c_str(), &status) != 0) continue;
    std::ifstream in(entry.path());
    std::string const text(std::istreambuf_iterator<char>(in), {});
    claims.push_back({name, status.st_ino, modified(status), holder_in(text, now - modified(status))});
  }
  return claims;
}

/// The current time of an open file's file system: sets the file's modification time and reads it. This machine's time if that fails.
double time_at(int file) {
  struct stat status {};
  if (::futimens(file, nullptr) != 0 || ::fstat(file, &status) != 0) return static_cast<double>(std::time(nullptr));
  return modified(status);
}

std::int64_t number_of(ClaimFile const& claim, std::string const& base) {
  return parsed_number<std::int64_t>(std::string_view(claim.name).substr(base.size())).value_or(0);
}

/// Whether a claim keeps out a process that wants to hold the folder in this mode.
bool keeps_out(ClaimFile const& claim, Claim::LockMode mode) {
  return claim.holder.alive && !is_part(claim.name) && !(mode == Claim::LockMode::shared && is_shared(claim.name));
}

std::string shared_name(std::string const& base) {
  static int count = 0;
  return fmt::format("{}shared-{}-{}-{}", base, host_name(), ::getpid(), ++count);
}

bool written(int file, std::string const& line) {
  bool const whole = ::write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  if (!whole && errno == 0) errno = ENOSPC;
  return whole;
}

/// Makes the file `own` and returns its descriptor. The file appears with its content, by a hard link, so that a process killed while
/// writing leaves no empty claim. On file systems without links it is written in place. −1, with errno, if the file exists already or
/// cannot be made.
int file_of_claim(int directory, std::string const& base, std::string const& own) {
  constexpr int flags = O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC;
  static int count = 0;
  std::string const line = line_of(::getpid()), part = fmt::format("{}part-{}-{}-{}", base, host_name(), ::getpid(), ++count);
  errno = 0;
  int file = ::openat(directory, part.c_str(), flags, 0644);
  if (file < 0) return -1;
  struct stat status {};
  bool made = written(file, line) && ::linkat(directory, part.c_str(), directory, own.c_str(), 0) == 0;
  int reason = errno;
  made = made || (::fstat(file, &status) == 0 && status.st_nlink > 1);  // a file server may have made the link although its answer was lost
  ::unlinkat(directory, part.c_str(), 0);
  if (made) return file;
  ::close(file);
  file = -1;
  if (reason == EPERM || reason == EOPNOTSUPP || reason == ENOSYS) {
    file = ::openat(directory, own.c_str(), flags, 0644);
    reason = errno;
    if (file >= 0 && !written(file, line)) {
      reason = errno;
      ::unlinkat(directory, own.c_str(), 0);
      ::close(file);
      file = -1;
    }
  }
  errno = reason;
  return file;
}

}  // namespace

std::int64_t claim_lapses() { return std::max<std::int64_t>(1, integer_in_environment("HEED_CLAIM_LAPSES").value_or(60)); }

std::string ClaimHolder::text() const {
  return fmt::format("process {} on {}{}", process, host, here ? "" : fmt::format(", last heard of {:.0f} s ago", std::max(0.0, silent)));
}

std::vector<ClaimHolder> claim_holders(fs::path const& folder, std::string const& name) {
  std::vector<ClaimHolder> holders;
  for (auto const& claim : claims_in(folder, name + ".claim-", static_cast<double>(std::time(nullptr))))
    if (!is_part(claim.name)) holders.push_back(claim.holder);
  return holders;
}

std::optional<Claim> Claim::attempt(fs::path const& folder, std::string const& name, LockMode mode, int clock) {
  std::string const base = name + ".claim-";
  auto now = static_cast<double>(std::time(nullptr));
  auto before = claims_in(folder, base, now);
  if (std::ranges::any_of(before, [](auto const& each) { return !each.holder.here; })) {
    now = time_at(clock);
    before = claims_in(folder, base, now);
  }
  if (std::ranges::any_of(before, [&](auto const& each) { return keeps_out(each, mode); })) return std::nullopt;
  std::int64_t number = 1;
  for (auto const& each : before) number = std::max(number, number_of(each, base) + 1);
  std::string const own = mode == LockMode::shared ? shared_name(base) : base + std::to_string(number);
  int const directory = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int const file = directory < 0 ? -1 : file_of_claim(directory, base, own);
  if (file < 0) {
    int const reason = errno;
    if (directory >= 0) ::close(directory);
    if (reason == EEXIST || reason == ENOENT) return std::nullopt;  // another process was faster, or has moved the folder aside
    throw Error(fmt::format("{}: {}", (folder / own).string(), std::strerror(reason)));
  }
  Claim claim(directory, file, base, own);
  begin_beating(file);
  // Another process keeps the folder if its claim is new, or has had a heartbeat since it was judged dead.
  for (auto const& each : claims_in(folder, base, now)) {
    if (each.name == own || is_part(each.name) || (mode == LockMode::shared && is_shared(each.name))) continue;
    auto const judged = std::ranges::find_if(
        before, [&](auto const& one) { return one.name == each.name && one.inode == each.inode && one.modified == each.modified; });
    if (judged == before.end()) return std::nullopt;
  }
  for (auto const& each : before)
    if (!each.holder.alive) ::unlink((folder / each.name).c_str());
  return claim;
}

Claim::Claim(int folder, int file, std::string base, std::string name)
    : folder_(folder), file_(file), base_(std::move(base)), name_(std::move(name)), maker_(::getpid()), looked_(late) {}

Claim::Claim(Claim&& other) noexcept
    : folder_(std::exchange(other.folder_, -1)),
      file_(std::exchange(other.file_, -1)),
      base_(std::move(other.base_)),
      name_(std::move(other.name_)),
      maker_(other.maker_),
      looked_(other.looked_) {}

Claim& Claim::operator=(Claim&& other) noexcept {
  std::swap(folder_, other.folder_);
  std::swap(file_, other.file_);
  std::swap(base_, other.base_);
  std::swap(name_, other.name_);
  std::swap(maker_, other.maker_);
  std::swap(looked_, other.looked_);
  return *this;
}

Claim::~Claim() { let_go(); }

void Claim::let_go() {
  if (file_ < 0) return;
  end_beating(file_);
  struct stat open {
  }, named{};
  bool const own = ::fstat(file_, &open) == 0 && ::fstatat(folder_, name_.c_str(), &named, 0) == 0 && open.st_ino == named.st_ino;
  if (maker_ == ::getpid() && own) ::unlinkat(folder_, name_.c_str(), 0);
  ::close(file_);
  if (folder_ >= 0) ::close(folder_);
  file_ = folder_ = -1;
}

bool Claim::share() {
  std::string const shared = shared_name(base_);
  bool const renamed = ::renameat(folder_, name_.c_str(), folder_, shared.c_str()) == 0;
  if (!renamed && errno != ENOENT) throw Error(fmt::format("{}: cannot be shared: {}", name_, std::strerror(errno)));
  if (renamed) name_ = shared;
  return renamed && !lost();
}

bool Claim::lost() const {
  if (file_ < 0 || looked_ == late) return false;
  unsigned const so_often = late;
  struct stat open {
  }, named{};
  if (::fstat(file_, &open) != 0 || ::fstatat(folder_, name_.c_str(), &named, 0) != 0 || open.st_ino != named.st_ino) return true;
  bool other = false;
  if (int const copy = ::openat(folder_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); copy >= 0) {
    if (DIR* const list = ::fdopendir(copy)) {
      while (auto const* const entry = ::readdir(list)) {
        std::string_view const each = entry->d_name;
        bool const both_share = is_shared(each) && is_shared(name_);
        other = other || (each.starts_with(base_) && each != name_ && !is_part(each) && !both_share);
      }
      ::closedir(list);
    } else {
      ::close(copy);
    }
  }
  if (other) return true;
  looked_ = so_often;
  return false;
}

}  // namespace heed
