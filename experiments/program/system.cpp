// Queries to the operating system, and its signals, for Linux and macOS.

#include "experiments/program/system.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <limits>
#include <string_view>

#include <fmt/format.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "nn/files/number.hpp"

#if defined(__APPLE__)
#include <mach-o/dyld.h>
#include <mach/mach.h>
#include <sys/sysctl.h>
#endif

namespace heed {

#if defined(__APPLE__)

namespace {

std::string distribution() {
  char release[32] = {};
  std::size_t size = sizeof release - 1;
  return ::sysctlbyname("kern.osproductversion", release, &size, nullptr, 0) == 0 ? fmt::format("macOS {}", release) : "macOS";
}

}  // namespace

std::filesystem::path program_file() {
  std::uint32_t size = 0;
  ::_NSGetExecutablePath(nullptr, &size);  // returns the path's length
  std::string path(size, '\0');
  return ::_NSGetExecutablePath(path.data(), &size) == 0 ? path.c_str() : "";
}

double available_memory() {
  vm_statistics64_data_t pages{};
  mach_msg_type_number_t words = HOST_VM_INFO64_COUNT;
  auto* const into = reinterpret_cast<host_info64_t>(&pages);
  if (::host_statistics64(::mach_host_self(), HOST_VM_INFO64, into, &words) != KERN_SUCCESS) return std::numeric_limits<double>::infinity();
  return static_cast<double>(pages.free_count + pages.inactive_count) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

#else

namespace {

/// The value of the first line that begins with `key`, in a file of lines "key : value" or "key=value", without quotes; "" if there is
/// none.
std::string field_of(char const* file, std::string const& key, char separator) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(key)) continue;
    constexpr char const* around = " \t\"";
    auto const begin = line.find_first_not_of(around, line.find(separator) + 1);
    return begin == std::string::npos ? "" : line.substr(begin, line.find_last_not_of(around) + 1 - begin);
  }
  return "";
}

std::string distribution() { return field_of("/etc/os-release", "PRETTY_NAME=", '='); }

}  // namespace

std::filesystem::path program_file() { return "/proc/self/exe"; }

double available_memory() {
  double const kilobytes = std::strtod(field_of("/proc/meminfo", "MemAvailable", ':').c_str(), nullptr);
  double available = kilobytes > 0 ? 1024 * kilobytes : std::numeric_limits<double>::infinity();
  std::ifstream limit("/sys/fs/cgroup/memory.max");
  std::ifstream used("/sys/fs/cgroup/memory.current");
  double max_use = 0, now = 0;
  if (limit >> max_use && used >> now) available = std::min(available, max_use - now);
  rlimit addresses{};
  if (::getrlimit(RLIMIT_AS, &addresses) == 0 && addresses.rlim_cur != RLIM_INFINITY)
    available = std::min(available, static_cast<double>(addresses.rlim_cur) -
                                        1024 * std::strtod(field_of("/proc/self/status", "VmSize", ':').c_str(), nullptr));
  return available;
}

#endif

std::string system_name() {
  std::string const name = distribution();
  utsname kernel{};
  if (::uname(&kernel) != 0) return name;
  return fmt::format("{}{}{} {} {}", name, name.empty() ? "" : ", ", kernel.sysname, kernel.release, kernel.machine);
}

std::optional<Index> integer_in_environment(char const* variable) {
  char const* const text = std::getenv(variable);
  return text == nullptr ? std::nullopt : parsed_number<Index>(text);
}

bool on_terminal() {
  char const* const kind = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) != 0 && kind != nullptr && std::string_view(kind) != "dumb";
}

std::size_t terminal_width() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::size_t terminal_height() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::string clock_time(double seconds) {
  auto const whole = static_cast<Index>(seconds + 0.5);
  auto const hours = whole / 3600, minutes = whole / 60 % 60, rest = whole % 60;
  return hours > 0 ? fmt::format("{}:{:02}:{:02}", hours, minutes, rest) : fmt::format("{}:{:02}", minutes, rest);
}

namespace {

std::atomic<int> noted = 0;
std::atomic<int> last_signal = 0;
std::atomic<bool> sigint_came = false;  // by SIGINT
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free, "a signal handler must not wait");

extern "C" void note(int signal) {
  int const before = errno;
  if (signal == SIGINT && sigint_came.exchange(true)) {
    [[maybe_unused]] auto const written = ::write(STDERR_FILENO, "\n", 1);  // ends the line of the progress bar
    ::_exit(130);
  }
  last_signal = signal;
  ++noted;
  errno = before;
}

}  // namespace

void note_signals() {
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;  // interrupted reads and writes are restarted
  sigemptyset(&action.sa_mask);
  for (int const signal : {SIGINT, SIGTERM}) ::sigaction(signal, &action, nullptr);
  for (int const signal : {SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU}) {
    struct sigaction before {};
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);  // ignored signals stay ignored, as under nohup
  }
}

bool interrupted() { return noted > 0; }

int signals_noted() { return noted; }

StopReason stop_reason() {
  if (sigint_came) return StopReason::asked;
  if (auto const at = integer_in_environment("SLURM_JOB_END_TIME")) {
    constexpr Index near = 300;  // Slurm may send a warning up to a minute earlier than asked for
    return *at - static_cast<Index>(std::time(nullptr)) <= near ? StopReason::out_of_time : StopReason::preempted;
  }
  int const signal = last_signal;
  return signal == SIGTERM || signal == SIGHUP ? StopReason::preempted : StopReason::out_of_time;
}

}  // namespace heed
