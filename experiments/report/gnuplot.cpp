#include "experiments/report/gnuplot.hpp"

#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "autograd/error.hpp"
#include "experiments/report/html.hpp"

namespace heed {

namespace {

constexpr std::array<std::array<int, 3>, 7> series{
    {{0, 0, 0}, {0, 114, 178}, {213, 94, 0}, {0, 158, 115}, {204, 121, 167}, {230, 159, 0}, {86, 180, 233}}};
constexpr int faint = 0xD9;  // grey of grids and of what is behind

/// A file without a name.
class Scratch {
 public:
  explicit Scratch(std::string const& content = "") {
    if (!file_ || std::fwrite(content.data(), 1, content.size(), file_.get()) != content.size() || std::fflush(file_.get()) != 0)
      throw Error("report: no temporary file can be written");
    std::rewind(file_.get());
  }
  int descriptor() const { return ::fileno(file_.get()); }
  std::string content() const {
    std::string text;
    std::array<char, 1 << 16> buffer{};
    std::rewind(file_.get());
    while (std::size_t const count = std::fread(buffer.data(), 1, buffer.size(), file_.get())) text.append(buffer.data(), count);
    return text;
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file_{std::tmpfile()};
};

/// What gnuplot prints for these commands; nothing if it cannot be started.
std::optional<std::string> gnuplot(std::string const& commands) {
  Scratch const input(commands), output, errors;
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, input.descriptor(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, output.descriptor(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, errors.descriptor(), STDERR_FILENO);
  char name[] = "gnuplot", no_startup_file[] = "-d";
  char* arguments[] = {name, no_startup_file, nullptr};
  pid_t process = -1;
  int const failed = ::posix_spawnp(&process, name, &actions, nullptr, arguments, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return std::nullopt;
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    auto said = errors.content();
    for (char& c : said) c = c == '\n' ? ' ' : c;
    throw Error(fmt::format("gnuplot: {}", said));
  }
  return output.content();
}

void replace(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size()) text.replace(at, from.size(), to);
}

/// cairo writes the time into a PDF; equal figures shall be equal files.
void forget_time(std::string& pdf) {
  constexpr std::string_view key = "/CreationDate (D:", zero = "19700101000000Z";
  if (auto const at = pdf.find(key); at != pdf.npos && pdf.compare(at + key.size() + zero.size(), 1, ")") == 0)
    pdf.replace(at + key.size(), zero.size(), zero);
}

}  // namespace

std::optional<Drawing> draw(Figure const& figure) {
  constexpr double pixels_per_inch = 120;  // so that 8 points are a page's small print
  auto const commands = "set encoding utf8\n" + figure.commands;
  auto svg = gnuplot(fmt::format("set terminal svg size {:.0f},{:.0f} noenhanced font 'sans-serif,13' linewidth 1.2 background '#ffffff'\n",
                                 Figure::width * pixels_per_inch, figure.height * pixels_per_inch) +
                     commands);
  if (!svg) return std::nullopt;
  auto pdf =
      gnuplot(fmt::format("set terminal pdfcairo size {:.2f}in,{:.2f}in noenhanced font 'Helvetica,8' fontscale 0.75 linewidth 1.4\n",
                          Figure::width, figure.height) +
              commands);
  if (!pdf) return std::nullopt;
  forget_time(*pdf);
  return Drawing{std::move(*svg), std::move(*pdf)};
}

std::string gnuplot_text(std::string_view text) {
  std::string result = "'";
  for (char const c : text) {
    if (c == '\'') result += '\'';
    result += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return result + '\'';
}

std::string line_colour(std::size_t index) {
  auto const& [red, green, blue] = series[index % series.size()];
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
    for (std::size_t i = 0; i < series.size(); ++i) colour(series[i][0], series[i][1], series[i][2], fmt::format("series{}", i));
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

}  // namespace heed
