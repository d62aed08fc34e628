#include "experiments/report/report.hpp"

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "experiments/report/added_parts.hpp"
#include "experiments/report/attention_maps.hpp"
#include "experiments/report/figures.hpp"
#include "experiments/report/page.hpp"
#include "experiments/report/study.hpp"
#include "nn/files/atomic_file.hpp"

namespace heed {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t map_bytes = 1'500'000;  ///< of a page, which stays below 3 MB

/// Leaves out what gnuplot refuses to draw, with a warning.
void drop_refused(Chapter& chapter) {
  std::erase_if(chapter.figures, [&](Figure const& figure) {
    try {
      draw({figure});
      return false;
    } catch (Error const& error) {
      chapter.material.warnings.push_back(fmt::format("the figure '{}' is missing: {}", figure.title, error.what()));
      return true;
    }
  });
}

/// Draws the figures, and leaves them in the folder.
void draw_figures(Chapter& chapter) {
  std::optional<std::vector<Drawing>> drawings;
  try {
    drawings = draw(chapter.figures);
  } catch (Error const&) {
    drop_refused(chapter);
    drawings = draw(chapter.figures);
  }
  if (!drawings) return;
  fs::path const folder = chapter.material.folder / "figures";
  fs::create_directories(folder);
  for (std::size_t i = 0; i < drawings->size(); ++i) {
    write_atomically(folder / (chapter.figures[i].name + ".svg"), (*drawings)[i].svg);
    write_atomically(folder / (chapter.figures[i].name + ".pdf"), (*drawings)[i].pdf);
    chapter.drawings.push_back(std::move((*drawings)[i].svg));
  }
}

Chapter chapter_of(fs::path const& folder, std::size_t budget) {
  Chapter chapter;
  if (holds_study(folder)) {
    chapter = study_chapter(folder);
  } else {
    chapter.material = read_material(folder);
    chapter.maps = attention_maps(chapter.material, budget);
    chapter.figures = figures(chapter.material);
    chapter.parts = added_parts(chapter.material);
    for (auto& part : chapter.parts) {
      for (auto& figure : part.figures) {
        figure.name = "added_" + figure.name;
        chapter.figures.push_back(figure);
      }
    }
  }
  draw_figures(chapter);
  return chapter;
}

void write_page(fs::path const& path, std::vector<Chapter> const& chapters) { write_atomically(path, page(chapters)); }

void warn(Chapter const& chapter) {
  if (chapter.drawings.empty() && !chapter.figures.empty())
    fmt::print(stderr, "heed: gnuplot is not installed, the report has no figures: apt-get install gnuplot-nox, then heed report {}\n",
               chapter.material.folder.string());
}

}  // namespace

void write_report(fs::path const& folder, bool quiet) {
  std::vector<Chapter> chapters;
  chapters.push_back(chapter_of(folder, map_bytes));
  write_page(folder / "report.html", chapters);
  warn(chapters.front());
  if (!quiet) fmt::print("  {}\n", (folder / "report.html").string());
}

bool has_report(fs::path const& folder) {
  std::error_code missing;
  auto const written = fs::last_write_time(folder / "report.html", missing);
  return !missing && written >= fs::last_write_time(folder / "summary.json", missing) && !missing;
}

void write_report(std::vector<fs::path> const& folders, fs::path const& path, bool quiet) {
  std::vector<Chapter> chapters;
  for (auto const& folder : folders) chapters.push_back(chapter_of(folder, map_bytes / folders.size()));
  fs::create_directories(path.parent_path());
  write_page(path, chapters);
  if (!quiet) fmt::print("  {}\n", path.string());
}

}  // namespace heed
