#include "experiments/report/gnuplot.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__APPLE__)
#include <crt_externs.h>
#endif

#include "autograd/error.hpp"
#include "experiments/folder/folder.hpp"
#include "experiments/program/signals.hpp"
#include "experiments/report/html.hpp"
#include "nn/files/utf8.hpp"

namespace heed {

namespace fs = std::filesystem;

namespace {

constexpr std::array<std::array<int, 3>, 7> series_colours{
    {{0, 0, 0}, {0, 114, 178}, {213, 94, 0}, {0, 158, 115}, {204, 121, 167}, {230, 159, 0}, {86, 180, 233}}};
constexpr int faint = 0xD9;  // grey of grids and of what is behind

/// A folder that goes with what is in it.
class Scratch {
 public:
  /// In TMPDIR; in /tmp where that is no folder that can be written to. Throws Error.
  Scratch() {
    std::error_code missing;
    for (auto const& parent : {fs::temp_directory_path(missing), fs::path("/tmp")}) {
      auto name = (parent / prefix).string() + "XXXXXX";
      if (parent.empty() || ::mkdtemp(name.data()) == nullptr) continue;
      path_ = name;
      remove_those_left(parent);
      return;
    }
    throw Error(fmt::format("figures need a folder for temporary files, and neither in TMPDIR nor in /tmp can one be made: {}",
                            std::strerror(errno)));
  }
  Scratch(Scratch const&) = delete;
  Scratch& operator=(Scratch const&) = delete;
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  std::string operator/(std::string const& name) const { return (path_ / name).string(); }

 private:
  static constexpr std::string_view prefix = "heed-figures-";

  /// Folders of processes that were killed while they drew: nothing was written there for a day.
  static void remove_those_left(fs::path const& parent) {
    std::error_code error;
    for (fs::directory_iterator entry(parent, error), end; !error && entry != end; entry.increment(error)) {
      if (!entry->path().filename().string().starts_with(prefix)) continue;
      std::error_code unknown;
      auto const written = fs::last_write_time(*entry, unknown);
      if (!unknown && fs::file_time_type::clock::now() - written > std::chrono::hours(24)) fs::remove_all(*entry, unknown);
    }
  }

  fs::path path_;
};

std::string content(std::string const& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The environment of this process, for a program that it starts.
char** own_environment() {
#if defined(__APPLE__)
  return *::_NSGetEnviron();
#else
  return environ;
#endif
}

/// The status with which a process ends, which is killed after a while or when heed is asked to end. Throws Hanging, Interrupted.
int ended(pid_t process, std::chrono::milliseconds limit) {
  auto const end = std::chrono::steady_clock::now() + limit;
  int const before = signals_noted();  // a page of what was done is drawn even so
  int status = 0;
  auto const kill = [&] {
    ::kill(process, SIGKILL);
    while (::waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
  };
  for (std::chrono::milliseconds pause{1};; pause = std::min(2 * pause, std::chrono::milliseconds(50))) {
    auto const result = ::waitpid(process, &status, WNOHANG);
    if (result == process || (result < 0 && errno != EINTR)) return status;
    if (signals_noted() > before) {
      kill();
      throw Interrupted("interrupted while gnuplot was drawing; heed report draws again");
    }
    if (std::chrono::steady_clock::now() >= end) {
      kill();
      throw Hanging(fmt::format("gnuplot did not end within {:.0f} s", std::ceil(std::chrono::duration<double>(limit).count())));
    }
    std::this_thread::sleep_for(pause);
  }
}

/// Lets gnuplot do what a file in the folder says. False if it cannot be started.
bool gnuplot(Scratch const& folder, std::string const& commands, std::chrono::milliseconds limit) {
  if (!(std::ofstream(folder / "commands", std::ios::binary) << commands << std::flush))
    throw Error(fmt::format("gnuplot: its commands cannot be written to {}", folder / "commands"));
  auto const input = folder / "commands", output = folder / "output", errors = folder / "errors";
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, input.c_str(), O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(), O_WRONLY | O_CREAT, 0600);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors.c_str(), O_WRONLY | O_CREAT, 0600);
  char name[] = "gnuplot", no_startup_file[] = "-d";
  char* arguments[] = {name, no_startup_file, nullptr};
  pid_t process = -1;
  int const failed = ::posix_spawnp(&process, name, &actions, nullptr, arguments, own_environment());
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return false;
  int const status = ended(process, limit);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
  auto message = content(errors);
  for (char& c : message) c = c == '\n' ? ' ' : c;
  throw Error(fmt::format("gnuplot: {}", message));
}

void replace(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size()) text.replace(at, from.size(), to);
}

/// Bytes in quotes. What has a meaning inside of them is written as a number; inside of single quotes, gnuplot cannot read a text that
/// begins with one.
std::string in_quotes(std::string_view bytes) {
  std::string result = "\"";
  for (char const c : bytes) {
    if (std::string_view("\"\\`'@").find(c) != std::string_view::npos || static_cast<unsigned char>(c) < ' ')
      result += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
    else
      result += c;
  }
  return result + '"';
}

/// cairo writes the time into a PDF; equal figures shall be equal files. cairo 1.18 has it among compressed objects, where it stays.
void forget_time(std::string& pdf) {
  constexpr std::string_view key = "/CreationDate (D:", zero = "19700101000000Z";
  if (auto const at = pdf.find(key); at != pdf.npos && pdf.compare(at + key.size() + zero.size(), 1, ")") == 0)
    pdf.replace(at + key.size(), zero.size(), zero);
}

}  // namespace

std::optional<std::vector<Drawing>> draw(std::vector<Figure> const& figures, bool png, std::optional<std::chrono::milliseconds> limit) {
  constexpr double pixels_per_inch = 120;  // so that 8 points are a page's small print
  constexpr double dots_per_inch = 300;
  Scratch const folder;
  std::string commands;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    auto const& figure = figures[i];
    auto const drawn = [&](std::string const& terminal, char const* kind) {
      commands += fmt::format("set terminal {}\nset output {}\nset encoding utf8\n{}set output\nreset session\n", terminal,
                              in_quotes(folder / fmt::format("{}.{}", i, kind)), figure.commands);
    };
    drawn(fmt::format("svg size {:.0f},{:.0f} noenhanced font 'sans-serif,13' linewidth 1.2 background '#ffffff'",
                      Figure::width * pixels_per_inch, figure.height * pixels_per_inch),
          "svg");
    drawn(fmt::format("pdfcairo size {:.2f}in,{:.2f}in noenhanced font 'Helvetica,8' fontscale 0.75 linewidth 1.4", Figure::width,
                      figure.height),
          "pdf");
    if (png)
      drawn(fmt::format("pngcairo size {:.0f},{:.0f} noenhanced font 'Helvetica,8' fontscale {:.3f} linewidth 3",
                        Figure::width * dots_per_inch, figure.height * dots_per_inch, 0.75 * dots_per_inch / 72),
            "png");
  }
  std::chrono::milliseconds const usual = std::chrono::seconds(30) + std::ssize(figures) * std::chrono::seconds(5);
  if (!gnuplot(folder, commands, limit.value_or(usual))) return std::nullopt;
  std::vector<Drawing> drawings;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    auto const made = [&](char const* kind) { return content(folder / fmt::format("{}.{}", i, kind)); };
    drawings.push_back({made("svg"), made("pdf"), png ? made("png") : ""});
    replace(drawings.back().svg, "<image ", "<image style='image-rendering:pixelated' ");  // cells, not a blur
    replace(drawings.back().svg, "]]>", "]]&gt;");  // the one place where XML wants > escaped, which gnuplot leaves as it is
    forget_time(drawings.back().pdf);
    auto const& [svg_text, pdf_text, png_bytes] = drawings.back();
    if (svg_text.find("</svg>") == svg_text.npos || pdf_text.find("%%EOF") == pdf_text.npos || (png && png_bytes.empty()))
      throw Error(
          fmt::format("gnuplot: '{}' was not drawn to its end (is the disk full, or the size of files limited?)", figures[i].title));
  }
  return drawings;
}

std::string gnuplot_text(std::string_view text) {
  auto visible = isolated(text);
  for (char& c : visible) c = static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  for (char const* none_of_xml : {"\xEF\xBF\xBE", "\xEF\xBF\xBF"}) replace(visible, none_of_xml, "\uFFFD");  // U+FFFE, U+FFFF
  return in_quotes(visible);
}

std::string gnuplot_tick(std::string_view text) {
  std::string format(text);
  replace(format, "%", "%%");
  return gnuplot_text(format);
}

std::string figure_name(std::string_view text) {
  auto name = cut_label(file_label(text));
  std::ranges::replace(name, '.', '_');
  return name;
}

std::string line_colour(std::size_t index) {
  auto const& [red, green, blue] = series_colours[index % series_colours.size()];
  return fmt::format("#{:02X}{:02X}{:02X}", red, green, blue);
}

double tick_step(double range, double count) {
  double const rough = range / count, power = std::pow(10, std::floor(std::log10(rough)));
  for (double const nice : {1.0, 2.0, 5.0})
    if (nice * power >= rough) return nice * power;
  return 10 * power;
}

std::string inlined(std::string svg, std::string const& prefix, std::string const& title, std::string const& caption) {
  auto const start = svg.find("<svg");
  svg.erase(0, start == svg.npos ? 0 : start);
  for (char const quote : {'\'', '"'}) {
    for (char const* attribute : {"id={0}", "href={0}#"}) {
      auto const found = fmt::format(fmt::runtime(attribute), quote);
      replace(svg, found, found + prefix + "-");
    }
    // gnuplot writes the numbers of lines in three columns, those of texts in none.
    auto const colour = [&](int red, int green, int blue, std::string const& name) {
      for (auto const& rgb : {fmt::format("rgb({:3}, {:3}, {:3})", red, green, blue), fmt::format("rgb({},{},{})", red, green, blue)})
        replace(svg, quote + rgb + quote, fmt::format("{0}var(--{1}){0}", quote, name));
    };
    for (std::size_t i = 0; i < series_colours.size(); ++i)
      colour(series_colours[i][0], series_colours[i][1], series_colours[i][2], fmt::format("series{}", i));
    colour(faint, faint, faint, "faint");
    replace(svg, fmt::format("{0}black{0}", quote), fmt::format("{0}currentColor{0}", quote));
    replace(svg, fmt::format("{0}#ffffff{0}", quote), fmt::format("{0}none{0}", quote));
  }
  replace(svg, "url(#", "url(#" + prefix + "-");
  replace(svg, "<title>Gnuplot</title>", fmt::format("<title id=\"{}-title\">{}</title>", prefix, escape(title)));
  if (auto const from = svg.find("<desc>"), to = svg.find("</desc>"); from != svg.npos && to != svg.npos)
    svg.replace(from, to - from, fmt::format("<desc id=\"{}-text\">{}", prefix, escape(caption)));
  replace(svg, "<svg", fmt::format("<svg role=\"img\" aria-labelledby=\"{0}-title {0}-text\"", prefix));
  return svg;
}

double PanelGrid::width_between(double left, double right, double gap, std::size_t across) {
  return (Figure::width - left - right - static_cast<double>(across - 1) * gap) / static_cast<double>(across);
}

std::string PanelGrid::place(std::size_t i) const {
  double const x = left_of(i), top = top_of(i);
  return margins(x, x + width, top - height, top, figure_height(), decimals);
}

std::string margins(double left, double right, double bottom, double top, double height, int decimals) {
  return fmt::format(
      "set lmargin at screen {0:.{4}f}\nset rmargin at screen {1:.{4}f}\nset bmargin at screen {2:.{4}f}\nset tmargin at screen "
      "{3:.{4}f}\n",
      left / Figure::width, right / Figure::width, bottom / height, top / height, decimals);
}

}  // namespace heed
