#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "autograd/registry.hpp"
#include "experiments/data/dataset.hpp"
#include "experiments/data/tokenizer.hpp"
#include "nn/settings.hpp"

namespace heed {

/// The context in which data are opened, besides their settings.
struct DataContext {
  std::filesystem::path config_folder = ".";  ///< of the file that names the data
  std::filesystem::path data_folder = {};     ///< `--data DIR`; empty: $HEED_DATA, and without that the cache folder
  std::uint64_t seed = 1;
  bool quiet = false;
  std::string held_out = "validation";            ///< the split of validation batches: validation, or test if the data have one
  std::filesystem::path runs = {};                ///< the folder of runs, for paths that name one; empty: paths name files only
  std::vector<std::string>* elsewhere = nullptr;  ///< output: files found only where an earlier run read them (locate)
  std::string tokenizer = {};                     ///< a trained model's, as JSON: used instead of one read from a folder or trained
  ReadFiles* tokenizer_files = nullptr;           ///< output: the files that a tokenizer was read from
  std::string kind = {};                          ///< the data's, from open_dataset()
};

/// The kinds of data that are synthetic tasks.
Choice task_choice();

/// Opens what a filled-in choice_of<DataKind>() describes; unless quiet, names on standard error the files found only where an earlier run
/// read them. Throws FileError for invalid data, Error that begins with the key for invalid settings or if there is no such split.
std::unique_ptr<Dataset> open_dataset(Choice const& data, DataContext const& context);

/// The splits that a kind of data may have.
enum class DataParts { validation, validation_and_test };

/// A kind of data: its name and help, fresh settings, and how to open it.
struct DataKind {
  std::string name;
  std::string help;
  std::function<std::shared_ptr<Settings>()> settings;
  std::function<std::unique_ptr<Dataset>(Settings const&, DataContext const&)> open;
  DataParts parts = DataParts::validation;
};
extern template void Registry<DataKind>::add(DataKind);  // compiled once

/// How to open data that are made from their settings and the context.
template <class S, class Data>
std::unique_ptr<Dataset> open_as(S const& settings, DataContext const& context) {
  return std::make_unique<Data>(settings, context);
}

/// `Declared<DataKind> const text_data{data_kind("text", "…", open_text)};`
template <class S>
DataKind data_kind(std::string name, std::string help, std::unique_ptr<Dataset> (*open)(S const&, DataContext const&),
                   DataParts parts = DataParts::validation) {
  return {std::move(name), std::move(help), [] { return std::make_shared<S>(); },
          [open](Settings const& settings, DataContext const& context) { return open(dynamic_cast<S const&>(settings), context); }, parts};
}

}  // namespace heed
