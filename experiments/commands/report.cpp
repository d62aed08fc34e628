#include "experiments/commands/report.hpp"

#include <fmt/format.h>

#include "experiments/ablation/ablation.hpp"
#include "experiments/report/report.hpp"

namespace heed {

namespace fs = std::filesystem;

namespace {

fs::path found(fs::path const& folder, Places const& places) {
  std::error_code unreadable;
  if (fs::is_directory(folder, unreadable)) return folder;
  if (fs::is_directory(places.output / folder, unreadable)) return places.output / folder;
  throw ConfigError(Place{std::make_shared<std::string>("report")},
                    fmt::format("there is no folder '{}', nor in {}", folder.string(), places.output.string()));
}

}  // namespace

Exit report(ReportOptions const& options) {
  std::vector<fs::path> folders;
  for (auto const& folder : options.folders) folders.push_back(found(folder, options.places));
  for (auto const& folder : folders) {
    renew_results(folder, options.places);
    write_report(folder, options.quiet);
  }
  if (folders.size() > 1) write_report(folders, options.places.output / "report.html", options.quiet);
  return Exit::done;
}

}  // namespace heed
