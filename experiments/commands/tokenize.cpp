#include <bit>
#include <iostream>
#include <span>

#include <fmt/format.h>

#include "experiments/commands/commands.hpp"
#include "experiments/config/table.hpp"
#include "experiments/config/yaml.hpp"
#include "experiments/data/files.hpp"
#include "experiments/data/text.hpp"
#include "experiments/data/tokenizers/tokenizers.hpp"
#include "experiments/program/command.hpp"
#include "experiments/program/progress.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/utf8.hpp"

namespace heed {

namespace {

std::shared_ptr<BytePairs const> trained(std::string_view text, TokenizeOptions const& options) {
  Progress progress("training", *options.train, 0, options.quiet, "tokens");
  auto const vocabulary = train_byte_pairs(text, *options.train, [&](Index tokens) { progress.update(tokens, ""); });
  progress.finish();
  write_byte_pairs(*vocabulary, options.folders.output);
  return vocabulary;
}

void declare_tokenize(CLI::App& app, TokenizeOptions& options) {
  add_argument(app, "FILE", "a text, or a folder of texts, relative to the working folder, then to the data folder", options.file);
  add_text(app, "--vocabulary", "FOLDER", "folder with vocab.json and merges.txt, or encoder.json and vocab.bpe, found likewise",
           options.vocabulary);
  add_number<Index>(app, "--train", options.train, min_byte_pairs, 1e7,
                    "train a vocabulary of N tokens on the text, including the 256 bytes and <|endoftext|>, and write it to --output");
  add_text(app, "--ids", "OUT", "output file of token ids, little-endian int32", options.ids);
  add_flag(app, "--special", options.special, "read <|endoftext|> and the like in the text as special tokens (default: as ordinary text)");
  describe_option(app, "--output", "with --train: output folder of vocab.json and merges.txt");
}

/// Throws ConfigError unless there is either --vocabulary, or --train with --output.
void check_tokenize(TokenizeOptions& options, GlobalOptions const& everywhere) {
  if (options.train && !options.vocabulary.empty())
    throw ConfigError("--train", "trains a vocabulary, but --vocabulary names an existing one");
  if (!options.train && options.vocabulary.empty()) throw ConfigError("tokenize", "--vocabulary or --train is required (see heed --help)");
  if (options.train && !everywhere.output_given) throw ConfigError("--output", "is needed: the folder for the vocabulary");
}

Declared<Command> const tokenize_command{
    {.order = 12,
     .name = "tokenize",
     .usage = "FILE --vocabulary FOLDER | --train N --output FOLDER",
     .help = "tokenize a text with byte-pair encoding, or train a vocabulary on it",
     .footer = "Words are separated by blanks; the end of a line counts as one.\n\nexamples:\n  heed tokenize shakespeare.txt --vocabulary "
               "gpt2-bpe --ids shakespeare.bin\n "
               " heed tokenize wikitext-2/train.txt --train 8000 --output wikitext-8000",
     .add = with_options<TokenizeOptions>(
         declare_tokenize, [](TokenizeOptions const& options) { return tokenize(options, std::cout); }, check_tokenize)}};

}  // namespace

Exit tokenize(TokenizeOptions const& options, std::ostream& out) {
  DataContext const context{.data_folder = options.folders.data, .quiet = options.quiet};
  auto const files = read_text_files(locate(options.file, context));
  auto const text = without_byte_order_mark(files.content);
  auto const vocabulary = options.train ? trained(text, options) : read_byte_pairs(locate(options.vocabulary, context));
  auto const tokens = vocabulary->encode(text, options.special);
  if (!options.ids.empty()) {
    static_assert(std::endian::native == std::endian::little);
    AtomicFile file(options.ids);
    file.write(std::as_bytes(std::span(tokens)));
    file.commit();
  }
  if (options.quiet) return Exit::done;
  if (options.train)
    out << fmt::format("{}: {} tokens{}\n", options.folders.output.string(), vocabulary->vocabulary(),
                       vocabulary->vocabulary() < *options.train ? ", because no pair of tokens occurs twice any more" : "");
  auto const count = static_cast<double>(tokens.size()), words = words_in(text);
  out << table({{"tokens", fmt::format("{}", tokens.size())},
                {"bytes", fmt::format("{}", text.size())},
                {"words", fmt::format("{}", words)},
                {"bytes per token", count > 0 ? fmt::format("{:.3f}", static_cast<double>(text.size()) / count) : "no tokens"},
                {"tokens per word", words > 0 ? fmt::format("{:.3f}", count / words) : "no words"}});
  return Exit::done;
}

}  // namespace heed
