#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <new>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "autograd/parallel.hpp"
#include "experiments/command_line.hpp"
#include "experiments/list.hpp"

namespace heed {

namespace {

Exit dispatch(CommandLine const& line) {
  if (!line.page.empty()) {
    std::cout << line.page;
    return Exit::done;
  }
  if (line.threads) set_threads(static_cast<int>(*line.threads));
  if (line.command == "run") return run(line.run);
  if (line.command == "check") return check(line.run);
  if (line.command == "sample") {
    auto options = line.sample;
    options.printable = ::isatty(STDOUT_FILENO) != 0;
    return sample(options, std::cout);
  }
  if (line.command == "inspect") {
    auto options = line.inspect;
    winsize size{};
    if (::isatty(STDOUT_FILENO) != 0 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) options.width = size.ws_col;
    return inspect(options, std::cout);
  }
  if (line.command == "bench") return bench(line.bench, std::cout);
  std::cout << list(line.topic, line.markdown);
  return Exit::done;
}

/// One line on standard error, whatever the message holds. That it cannot be written is no reason to fail otherwise (fmt::print throws).
Exit fail(Exit code, std::string message) {
  for (auto& c : message)
    if (c == '\n' || c == '\r') c = ' ';
  std::fputs(fmt::format("heed: {}\n", message).c_str(), stderr);
  return code;
}

Exit guarded(int count, char** arguments) try {
  auto const code = dispatch(parse_command_line({arguments + 1, arguments + count}));
  errno = 0;
  if (!std::cout.flush() || std::fflush(stdout) != 0)
    return fail(Exit::other, fmt::format("standard output: {}", errno != 0 ? std::strerror(errno) : "cannot be written"));
  return code;
} catch (ConfigError const& error) {
  return fail(Exit::usage, error.what());
} catch (FolderError const& error) {
  return fail(Exit::usage, error.what());
} catch (FileError const& error) {
  return fail(Exit::data, error.what());
} catch (TrainingError const& error) {
  return fail(Exit::failed, error.what());
} catch (std::bad_alloc const&) {
  return fail(Exit::other, "out of memory; a smaller train.batch, model.context or model.width needs less");
} catch (std::exception const& error) {
  return fail(Exit::other, error.what());
}

}  // namespace

}  // namespace heed

int main(int count, char** arguments) {
  std::signal(SIGPIPE, SIG_DFL);  // a reader that has seen enough ends the program quietly, even if the parent ignored the signal
  return static_cast<int>(heed::guarded(count, arguments));
}
