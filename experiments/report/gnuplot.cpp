#include "experiments/report/gnuplot.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <string_view>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "experiments/config/table.hpp"
#include "experiments/program/failure.hpp"
#include "experiments/program/system.hpp"
#include "experiments/report/html.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/input_file.hpp"

extern "C" char** environ;  // not in every system's headers

namespace heed {

namespace fs = std::filesystem;

namespace {

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

/// The status with which a process ends, which is killed after a while or when heed is asked to end. Throws Hanging, Interrupted.
int ended(pid_t process, std::chrono::milliseconds limit) {
  auto const end = std::chrono::steady_clock::now() + limit;
  int const before = signals_noted();  // a page of what was done is drawn even so
  int status = 0;
  for (std::chrono::milliseconds pause{1};; pause = std::min(2 * pause, std::chrono::milliseconds(50))) {
    auto const result = ::waitpid(process, &status, WNOHANG);
    if (result == process || (result < 0 && errno != EINTR)) return status;
    bool const interrupted = signals_noted() > before;
    if (interrupted || std::chrono::steady_clock::now() >= end) {
      ::kill(process, SIGKILL);
      while (::waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
      if (interrupted) throw Interrupted("interrupted while gnuplot was drawing; heed report draws again");
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
  int const failed = ::posix_spawnp(&process, name, &actions, nullptr, arguments, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return false;
  int const status = ended(process, limit);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
  auto message = read_if_there(errors).value_or("");
  for (char& c : message) c = c == '\n' ? ' ' : c;
  throw Error(fmt::format("gnuplot: {}", message));
}

/// cairo writes the time into a PDF; equal figures shall be equal files. cairo 1.18 has it among compressed objects, where it stays.
void forget_time(std::string& pdf) {
  constexpr std::string_view key = "/CreationDate (D:", zero = "19700101000000Z";
  if (auto const at = pdf.find(key); at != pdf.npos && pdf.compare(at + key.size() + zero.size(), 1, ")") == 0)
    pdf.replace(at + key.size(), zero.size(), zero);
}

/// The terminals that render a plot, by the kind of their files.
std::vector<std::pair<char const*, std::string>> terminals_of(Plot const& plot) {
  constexpr double pixels_per_inch = 120;  // so that 8 points are a page's small print
  constexpr double dots_per_inch = 300;
  auto const& [width, height] = std::pair(plot.width, plot.height);
  std::vector<std::pair<char const*, std::string>> terminals{
      {"svg", fmt::format("svg size {:.0f},{:.0f} noenhanced font 'sans-serif,13' linewidth 1.2 background '#ffffff'",
                          width * pixels_per_inch, height * pixels_per_inch)}};
  if (plot.pdf)
    terminals.emplace_back(
        "pdf", fmt::format("pdfcairo size {:.2f}in,{:.2f}in noenhanced font 'Helvetica,8' fontscale 0.75 linewidth 1.4", width, height));
  if (plot.png)
    terminals.emplace_back("png", fmt::format("pngcairo size {:.0f},{:.0f} noenhanced font 'Helvetica,8' fontscale {:.3f} linewidth 3",
                                              width * dots_per_inch, height * dots_per_inch, 0.75 * dots_per_inch / 72));
  return terminals;
}

std::string inlined_svg(std::string svg, std::string const& prefix, Figure const& figure) {
  auto const start = svg.find("<svg");
  svg.erase(0, start == svg.npos ? 0 : start);
  for (char const quote : {'\'', '"'}) {
    for (char const* attribute : {"id={0}", "href={0}#"}) {
      auto const found = fmt::format(fmt::runtime(attribute), quote);
      replace_all(svg, found, found + prefix + "-");
    }
    // gnuplot writes the numbers of lines in three columns, those of texts in none.
    auto const colour = [&](std::string const& hex, std::string const& name) {
      auto const part = [&](std::size_t i) { return std::stoi(hex.substr(1 + 2 * i, 2), nullptr, 16); };
      for (char const* rgb : {"rgb({:3}, {:3}, {:3})", "rgb({},{},{})"})
        replace_all(svg, quote + fmt::format(fmt::runtime(rgb), part(0), part(1), part(2)) + quote,
                    fmt::format("{0}var(--{1}){0}", quote, name));
    };
    for (std::size_t i = 0; i < line_colours; ++i) colour(line_colour(i), fmt::format("series{}", i));
    colour(faint_colour, "faint");
    replace_all(svg, fmt::format("{0}black{0}", quote), fmt::format("{0}currentColor{0}", quote));
    replace_all(svg, fmt::format("{0}#ffffff{0}", quote), fmt::format("{0}none{0}", quote));
  }
  replace_all(svg, "url(#", "url(#" + prefix + "-");
  replace_all(svg, "<title>Gnuplot</title>", fmt::format("<title id=\"{}-title\">{}</title>", prefix, escape(figure.title)));
  if (auto const from = svg.find("<desc>"), to = svg.find("</desc>"); from != svg.npos && to != svg.npos)
    svg.replace(from, to - from, fmt::format("<desc id=\"{}-text\">{}", prefix, escape(figure.caption)));
  replace_all(svg, "<svg", fmt::format("<svg role=\"img\" aria-labelledby=\"{0}-title {0}-text\"", prefix));
  return svg;
}

}  // namespace

std::optional<std::vector<Drawing>> draw_plots(std::vector<Plot> const& plots, std::optional<std::chrono::milliseconds> limit) {
  Scratch const folder;
  auto const file = [&](std::size_t i, char const* kind) { return folder / fmt::format("{}.{}", i, kind); };
  auto const content = [&](std::size_t i, char const* kind) { return read_if_there(file(i, kind)).value_or(""); };
  std::string commands;
  for (std::size_t i = 0; i < plots.size(); ++i)
    for (auto const& [kind, terminal] : terminals_of(plots[i]))
      commands += fmt::format("set terminal {}\nset output {}\nset encoding utf8\n{}set output\nreset session\n", terminal,
                              in_quotes(file(i, kind)), plots[i].commands);
  std::chrono::milliseconds const usual = std::chrono::seconds(30) + std::ssize(plots) * std::chrono::seconds(5);
  if (!gnuplot(folder, commands, limit.value_or(usual))) return std::nullopt;
  std::vector<Drawing> drawings;
  for (std::size_t i = 0; i < plots.size(); ++i) {
    auto& drawing = drawings.emplace_back(Drawing{content(i, "svg"), content(i, "pdf"), content(i, "png")});
    replace_all(drawing.svg, "<image ", "<image style='image-rendering:pixelated' ");  // cells, not a blur
    replace_all(drawing.svg, "]]>", "]]&gt;");  // the one place where XML wants > escaped, which gnuplot leaves as it is
    forget_time(drawing.pdf);
    if (drawing.svg.find("</svg>") == drawing.svg.npos || (plots[i].pdf && drawing.pdf.find("%%EOF") == drawing.pdf.npos) ||
        (plots[i].png && drawing.png.empty()))
      throw Error(fmt::format("gnuplot: '{}' was not drawn to its end (is the disk full, or the size of files limited?)", plots[i].title));
  }
  return drawings;
}

std::optional<std::vector<Drawing>> draw(std::vector<Figure> const& figures, Beside beside) {
  std::vector<Plot> plots;
  for (auto const& figure : figures) {
    plots.push_back(plot_of(figure));
    plots.back().png = beside == Beside::png;
    if (beside != Beside::narrow) continue;
    plots.push_back(plot_of(figure, Figure::narrow));
    plots.back().pdf = false;
  }
  auto drawings = draw_plots(plots);
  if (!drawings || beside != Beside::narrow) return drawings;
  std::vector<Drawing> paired;
  for (std::size_t i = 0; i < drawings->size(); i += 2) {
    paired.push_back(std::move((*drawings)[i]));
    paired.back().narrow = std::move((*drawings)[i + 1].svg);
  }
  return paired;
}

std::string inlined(Drawing const& drawing, std::string const& prefix, Figure const& figure) {
  if (drawing.narrow.empty()) return inlined_svg(drawing.svg, prefix, figure);
  return fmt::format("<div class=\"roomy\">{}</div><div class=\"slim\">{}</div>", inlined_svg(drawing.svg, prefix, figure),
                     inlined_svg(drawing.narrow, prefix + "-slim", figure));
}

void write_figures(fs::path const& file, std::vector<Figure> const& figures, std::string const& title, std::string const& if_none) {
  auto const kind = file.extension();
  auto const drawings = draw(figures, kind == ".png" ? Beside::png : kind == ".html" ? Beside::narrow : Beside::nothing);
  if (!drawings) throw Error(fmt::format("{}: gnuplot, which draws it, is not installed: apt-get install gnuplot-nox", file.string()));
  std::string html = fmt::format("<main>\n<h1>{}</h1>\n<p class=\"lead\">{}</p>\n", escape(title),
                                 escape(figures.empty() ? if_none : figures.front().caption));
  for (std::size_t i = 0; i < figures.size(); ++i) {
    auto const& drawing = (*drawings)[i];
    if (kind == ".html") {
      html += fmt::format(
          "<figure>\n<h3>{0}</h3>\n<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{0}\">{1}</div>\n</figure>\n",
          escape(figures[i].title), inlined(drawing, figures[i].name, figures[i]));
      continue;
    }
    auto path = file;
    if (auto const& name = figures[i].name; figures.size() > 1)
      path.replace_filename(fmt::format("{}-{}{}", file.stem().string(), name.substr(name.find_first_of("0123456789")), kind.string()));
    write_atomically(path, kind == ".svg" ? drawing.svg : kind == ".pdf" ? drawing.pdf : drawing.png);
  }
  if (kind == ".html") write_atomically(file, html_page(escape(title), html + "</main>\n"));
}

}  // namespace heed
