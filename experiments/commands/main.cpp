#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "autograd/error.hpp"
#include "experiments/commands/commands.hpp"
#include "experiments/config/table.hpp"
#include "experiments/program/failure.hpp"

namespace heed {

namespace {

Exit answered(int count, char** arguments) {
  set_table_width(columns_of(STDOUT_FILENO));
  auto const line = parse_command_line({arguments + 1, arguments + count});
  std::cout << line.page;
  auto const code = line.page.empty() ? line.run(line.everywhere) : Exit::done;
  if (code == Exit::interrupted) return code;  // by a terminal that is gone, perhaps
  errno = 0;
  if (std::cout.flush() && std::fflush(stdout) == 0) return code;
  return fail(Exit::other, fmt::format("standard output: {}", errno != 0 ? std::strerror(errno) : "cannot be written"));
}

/// The last resort, where nothing can be thrown on: some of the standard library's functions that promise not to throw allocate.
[[noreturn]] void end_of_all() {
  auto const code = guarded([]() -> Exit {
    if (auto const failure = std::current_exception()) std::rethrow_exception(failure);
    throw Error("ended by the C++ library, without an exception");
  });
  std::_Exit(static_cast<int>(code));
}

/// Standard input, output and error that the parent has closed, as some daemons do, lead to /dev/null: the first files that are opened
/// would get their numbers, and what is printed.
void open_standard_streams() {
  for (int const stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0 && errno == EBADF) ::open("/dev/null", O_RDWR);  // the lowest number that is free: this one
}

}  // namespace

}  // namespace heed

int main(int count, char** arguments) {
  heed::open_standard_streams();
  std::signal(SIGPIPE, SIG_DFL);  // a reader that has seen enough ends the program quietly, even if the parent ignored the signal
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow (ulimit -f) is a write that fails, which says so
  std::set_terminate(heed::end_of_all);
  return static_cast<int>(heed::guarded([&] { return heed::answered(count, arguments); }));
}
