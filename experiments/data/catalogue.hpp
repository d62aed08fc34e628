#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/data/open.hpp"

namespace heed {

/// One file of a data set, as the catalogue describes it.
struct CatalogueFile {
  std::string part;  ///< "text" (to be split), or "train", "validation", "test"
  std::string path;  ///< inside the data folder and the cache
  std::string url;
  std::string sha256;
  Index bytes = 0;
};

/// A data set with a name: `data: {kind: text, name: …}`.
struct CatalogueEntry {
  std::string name;
  std::string about;
  std::string licence;
  std::vector<CatalogueFile> files;

  CatalogueFile const* part(std::string_view name) const;
};

/// Reads a catalogue (format: configs/data/catalogue.yaml). Throws FileError with file, line and column.
std::vector<CatalogueEntry> read_catalogue(std::string_view text, std::string const& path);
/// The catalogue that comes with heed.
std::vector<CatalogueEntry> const& catalogue();
/// Throws Error with the nearest name if there is no such entry.
CatalogueEntry const& catalogue_entry(std::vector<CatalogueEntry> const& entries, std::string const& name);

/// The file on this machine: in the data folder, where other content is an error; else in the cache, fetching it if it is missing or has
/// other content. Throws FileError that says where to put it by hand.
std::filesystem::path obtain(CatalogueFile const& file, DataContext const& context);

/// Fetches a URL (http, https, file) of at most `bytes` bytes to `target`, which appears complete or not at all, and only with this
/// SHA-256; shows a progress bar on a terminal unless `quiet`. Throws FileError naming target, URL and reason; Error if the disk is full.
void download(std::string const& url, std::filesystem::path const& target, std::string const& sha256, Index bytes, bool quiet);

}  // namespace heed
