#include "experiments/commands/tokenize.hpp"

#include <array>
#include <bit>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "experiments/config/table.hpp"
#include "experiments/data/documents.hpp"
#include "experiments/data/files.hpp"
#include "experiments/data/tokenizers/byte_pair_files.hpp"
#include "experiments/data/tokenizers/byte_pair_training.hpp"
#include "experiments/data/tokenizers/words.hpp"
#include "experiments/run/progress.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/utf8.hpp"

namespace heed {

namespace {

std::shared_ptr<BytePairs const> trained(std::string_view text, TokenizeOptions const& options) {
  Progress progress("training", *options.train, 0, options.quiet, "tokens");
  auto const vocabulary = train_byte_pairs(text, *options.train, [&](std::int64_t tokens) { progress.update(tokens, ""); });
  progress.finish();
  write_byte_pairs(*vocabulary, options.places.output);
  return vocabulary;
}

/// As little-endian int32, whatever the processor.
void write_ids(std::vector<std::int32_t> const& tokens, std::filesystem::path const& path) {
  AtomicFile file(path);
  constexpr std::size_t at_once = 1 << 16;
  std::string bytes;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    auto const token = static_cast<std::uint32_t>(tokens[i]);
    for (unsigned shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>(static_cast<unsigned char>(token >> shift)));
    if (bytes.size() < at_once && i + 1 < tokens.size()) continue;
    file.write(bytes);
    bytes.clear();
  }
  file.commit();
}

}  // namespace

Exit tokenize(TokenizeOptions const& options, std::ostream& out) {
  DataContext const context{.data_folder = options.places.data, .quiet = options.quiet};
  auto const files = read_text_files(locate(options.file, context));
  auto const text = without_byte_order_mark(files.content);
  auto const vocabulary = options.train ? trained(text, options) : read_byte_pairs(locate(options.vocabulary, context));
  auto const tokens = vocabulary->encode(text, options.special);
  if (!options.ids.empty()) write_ids(tokens, options.ids);
  if (options.quiet) return Exit::done;
  if (options.train)
    out << fmt::format("{}: {} tokens{}\n", options.places.output.string(), vocabulary->size(),
                       vocabulary->size() < *options.train ? ", for no pair of tokens stands twice any more" : "");
  auto const count = static_cast<double>(tokens.size()), words = static_cast<double>(words_of(text).size());
  out << table({{"tokens", fmt::format("{}", tokens.size())},
                {"bytes", fmt::format("{}", text.size())},
                {"words", fmt::format("{}", words)},
                {"bytes a token", count > 0 ? fmt::format("{:.3f}", static_cast<double>(text.size()) / count) : "no tokens"},
                {"tokens a word", words > 0 ? fmt::format("{:.3f}", count / words) : "no words"}});
  return Exit::done;
}

}  // namespace heed
