#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "experiments/data/dataset.hpp"
#include "nn/settings.hpp"

namespace heed {

/// What opening data needs to know beside its settings.
struct DataContext {
  std::filesystem::path config_folder = ".";  ///< of the file that names the data
  std::filesystem::path data_folder = {};     ///< `--data DIR`; empty: $HEED_DATA, and without that the cache folder
  std::uint64_t seed = 1;
  bool quiet = false;
  std::string held_out = "validation";            ///< the part that validation batches are of: validation, or test where the data have one
  std::filesystem::path runs = {};                ///< where runs are, for what names one; empty: it is looked for as a file alone
  std::vector<std::string>* elsewhere = nullptr;  ///< noted here: files that are where a run has read them, and nowhere else (locate)
  std::string tokenizer = {};                     ///< of a trained model, as JSON: taken where it came from a folder or from training
  ReadFiles* tokenizer_files = nullptr;           ///< noted here: what a tokenizer was read from
};

/// The kinds of data that are synthetic tasks.
Choice task_choice();

/// Opens what a filled-in choice_of<DataKind>() describes; tells on standard error, unless it is to be quiet, which files were found where
/// a run has read them alone. Throws FileError for data that are wrong, Error that begins with the key for settings that are, and for data
/// without the part that is to be held out.
std::unique_ptr<Dataset> open_dataset(Choice const& data, DataContext const& context);

/// What can be held out of a kind's data, if not of each.
enum class DataParts { validation, validation_and_test };

/// A kind of data: its name and help, fresh settings, and how to open it.
struct DataKind {
  std::string name;
  std::string help;
  std::function<std::shared_ptr<Settings>()> settings;
  std::function<std::unique_ptr<Dataset>(Settings const&, DataContext const&)> open;
  bool task = false;  ///< a synthetic task (experiments/data/tasks)
  DataParts parts = DataParts::validation;
};

/// `Declared<DataKind> const declared{data_kind("text", "…", open_text)};`
template <class S>
DataKind data_kind(std::string name, std::string help, std::unique_ptr<Dataset> (*open)(S const&, DataContext const&),
                   DataParts parts = DataParts::validation) {
  return {std::move(name),
          std::move(help),
          [] { return std::make_shared<S>(); },
          [open](Settings const& settings, DataContext const& context) { return open(dynamic_cast<S const&>(settings), context); },
          false,
          parts};
}

}  // namespace heed
