#include "experiments/program/progress.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include "experiments/config/table.hpp"
#include "experiments/program/system.hpp"

namespace heed {

namespace {

using namespace std::chrono_literals;

/// A log that cannot be written (a full disk) is no reason to end a training: no fmt::print here, which throws.
void show(std::string const& text) { std::fputs(text.c_str(), stderr); }

double share_done(ProgressState const& state) {
  return state.total > 0 ? std::clamp(static_cast<double>(state.done) / static_cast<double>(state.total), 0.0, 1.0) : 0;
}

double rate(ProgressState const& state) { return state.seconds > 0 ? static_cast<double>(state.done - state.start) / state.seconds : 0; }

/// "0:27 left", or nothing if it is unknown.
std::string time_left(ProgressState const& state) {
  double const per_second = rate(state);
  if (per_second <= 0 || state.done >= state.total) return {};
  double const seconds = static_cast<double>(state.total - state.done) / per_second;
  return seconds < 1e7 ? clock_time(seconds) + " left" : std::string();
}

/// The rate, the time left and the note, as far as they are known, each behind a separator.
std::string details(ProgressState const& state, std::string const& separator, std::string const& unit) {
  std::string text;
  if (double const per_second = rate(state); per_second > 0)
    text += fmt::format("{}{:.{}f}{}/s", separator, per_second, per_second < 1 ? 2 : per_second < 100 ? 1 : 0, unit);
  for (auto const& part : {time_left(state), state.note})
    if (!part.empty()) text += separator + part;
  return text;
}

/// ━━━━╸────: filled to half a column.
std::string drawn_bar(double part, std::size_t width) {
  auto const halves = static_cast<std::size_t>(part * static_cast<double>(2 * width));
  std::string bar;
  for (std::size_t i = 0; i < width; ++i) bar += 2 * i + 2 <= halves ? "━" : 2 * i + 1 <= halves ? "╸" : "─";
  return bar;
}

}  // namespace

std::string progress_bar(ProgressState const& state, std::size_t width) {
  if (width < 40) return {};
  auto const head = fmt::format("{}  {:3.0f} %", state.title, std::floor(100 * share_done(state)));
  auto const tail = fmt::format("{}/{} {}{}", state.done, state.total, state.unit, details(state, "  ", ""));
  auto const taken = columns(head) + columns(tail) + 4;
  if (taken + 8 > width) return cut(head + "  " + tail, width);
  return fmt::format("{}  {}  {}", head, drawn_bar(share_done(state), std::min<std::size_t>(width - taken, 30)), tail);
}

std::string progress_line(ProgressState const& state) {
  return fmt::format("{}: {}/{} {}, {:.0f} %{}", state.title, state.done, state.total, state.unit, std::floor(100 * share_done(state)),
                     details(state, ", ", " " + state.unit));
}

Progress::Progress(std::string title, Index total, Index done, bool quiet, std::string unit)
    : state_{std::move(title), std::move(unit), {}, total, done, done, 0},
      quiet_(quiet),
      terminal_(on_terminal()),
      began_(Clock::now()),
      next_(began_ + 2s) {}

Progress::~Progress() { finish(); }

void Progress::update(Index done, std::string const& note) {
  if (quiet_) return;
  state_.done = done;
  state_.note = note;
  if (auto const now = Clock::now(); now >= next_) draw(now);
}

void Progress::message(std::string const& line) {
  if (quiet_) return;
  bool const again = drawn_;
  finish();
  show(line + "\n");
  if (again) draw(Clock::now());
}

void Progress::draw(Clock::time_point now) {
  state_.seconds = std::chrono::duration<double>(now - began_).count();
  if (!terminal_) {
    show(progress_line(state_) + "\n");
    next_ = now + std::max<Clock::duration>(10s, (now - began_) / 30);  // a long run's log stays short
    return;
  }
  auto const bar = progress_bar(state_, terminal_width() - 1);  // a full line would wrap
  if (drawn_ || !bar.empty()) show("\r" + bar + "\033[K");
  drawn_ = !bar.empty();
  next_ = now + 100ms;
}

void Progress::finish() {
  if (drawn_) show("\r\033[K");
  drawn_ = false;
}

}  // namespace heed
