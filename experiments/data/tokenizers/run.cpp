#include <fmt/format.h>

#include "autograd/error.hpp"
#include "experiments/data/files.hpp"
#include "experiments/data/open.hpp"
#include "experiments/data/tokenizer.hpp"
#include "nn/files/input_file.hpp"
#include "nn/files/safetensors.hpp"
#include "nn/files/sha256.hpp"

namespace heed {

namespace {

struct RunTokenizerSettings : Settings {
  std::string from;
  std::vector<Field> fields() override {
    return {field(&from, "from", "folder of a trained run, relative to the configuration, then to the data folder").mandatory()};
  }
};

std::shared_ptr<Tokenizer const> make_run(Settings const& settings, TokenizerKind::Source const& source) {
  if (!source.context.tokenizer.empty()) return restore_tokenizer(source.context.tokenizer);
  auto path = locate(dynamic_cast<RunTokenizerSettings const&>(settings).from, source.context);
  if (is_folder(path)) path /= "checkpoint.safetensors";
  auto const metadata = SafetensorsFile(path).metadata();
  auto const found = metadata.find("tokenizer");
  if (found == metadata.end())
    throw FileError(fmt::format("{}: its metadata hold no tokenizer: its data were tokens without a text", path.string()));
  if (source.context.tokenizer_files != nullptr) (*source.context.tokenizer_files)["tokenizer.run"] = {path.string(), sha256_of_file(path)};
  try {
    return restore_tokenizer(found->second);
  } catch (Error const& error) {
    throw FileError(fmt::format("{}: its metadata of the tokenizer: {}", path.string(), error.what()));
  }
}

Declared<TokenizerKind> const run_tokenizer{{.name = "run",
                                             .help = "the tokenizer of a trained run",
                                             .settings = [] { return std::make_shared<RunTokenizerSettings>(); },
                                             .make = make_run}};

}  // namespace

}  // namespace heed
