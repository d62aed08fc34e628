#include "experiments/data/text.hpp"

#include <algorithm>
#include <tuple>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "autograd/error.hpp"
#include "autograd/random.hpp"
#include "experiments/data/catalogue.hpp"
#include "experiments/data/ngram.hpp"
#include "experiments/data/tokenizers/tokenizers.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/sha256.hpp"
#include "nn/files/utf8.hpp"

namespace heed {
namespace {

/// Calls f; what it has to say about the text is about the file.
template <class F>
auto about_file(std::string const& origin, F f) {
  try {
    return f();
  } catch (FileError const&) {  // of another file
    throw;
  } catch (Error const& error) {
    throw FileError(origin + ": " + error.what());
  }
}

std::unique_ptr<Dataset> open_text(TextSettings const& settings, DataContext const& context) {
  auto const* const entry = settings.name ? &catalogue_entry(catalogue(), *settings.name) : nullptr;
  auto const part = [&](char const* name) { return entry != nullptr ? entry->part(name) : nullptr; };
  bool const tests = context.held_out == "test";
  if (tests && part("test") == nullptr) {
    throw Error(entry == nullptr ? "data.path: a text file has no test part, only its end is held out; a data set of the catalogue with a "
                                   "file `test` has one (data.name)"
                                 : fmt::format("data.name: '{}' has no file `test` in the catalogue", entry->name));
  }
  auto const* const whole = part("text");
  auto const path = entry == nullptr ? locate(settings.path.value(), context) : obtain(whole ? *whole : *part("train"), context);
  std::optional<TextFiles> apart;
  fs::path held_out;
  if (entry != nullptr && whole == nullptr) apart = read_text_files(held_out = obtain(*part("validation"), context));
  auto data = std::make_unique<TextDataset>(read_text_files(path), path.string(), settings, context, apart, held_out.string());
  if (tests) {
    auto const test = obtain(*part("test"), context);
    data->test_on(read_text_files(test), test.string());
  }
  return data;
}

Declared<DataKind> const text_data{data_kind("text",
                                             "a text file, or a folder of them, tokenized into characters, bytes, words or byte pairs",
                                             open_text, DataParts::validation_and_test)};

constexpr std::size_t header_size = 8 + sizeof(std::uint64_t) + 64;

/// The beginning of a file: its format, the number of tokens, and the SHA-256 of the key and the tokens that follow.
std::string header_of(std::string const& key, std::span<std::int32_t const> tokens) {
  Sha256 content;
  content.update(std::as_bytes(std::span(key)));
  content.update(std::as_bytes(tokens));
  std::uint64_t const count = tokens.size();
  return "heedtok2" + std::string(reinterpret_cast<char const*>(&count), sizeof count) + content.hex();
}

/// A whole file's content, as long as somebody holds it; null if it cannot be mapped.
std::shared_ptr<void const> mapped_file(fs::path const& path, std::size_t& size) {
  int const descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return nullptr;
  struct stat state {};
  bool const regular = ::fstat(descriptor, &state) == 0 && S_ISREG(state.st_mode) && state.st_size > 0;
  size = regular ? static_cast<std::size_t>(state.st_size) : 0;
  void* const begin = regular ? ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0) : MAP_FAILED;
  ::close(descriptor);
  if (begin == MAP_FAILED) return nullptr;
  return {begin, [size](void const* first) { ::munmap(const_cast<void*>(first), size); }};
}

EncodedText in_memory(std::vector<std::int32_t> tokens) {
  auto const kept = std::make_shared<std::vector<std::int32_t> const>(std::move(tokens));
  return {kept, *kept};
}

}  // namespace

std::optional<EncodedText> EncodedText::read(fs::path const& path, std::string const& key) {
  std::size_t size = 0;
  auto const content = mapped_file(path, size);
  if (!content || size < header_size || (size - header_size) % sizeof(std::int32_t) != 0) return std::nullopt;
  auto const* const begin = static_cast<char const*>(content.get());
  EncodedText const text{content,
                         {reinterpret_cast<std::int32_t const*>(begin + header_size), (size - header_size) / sizeof(std::int32_t)}};
  return std::string_view(begin, header_size) == header_of(key, text.tokens) ? std::optional(text) : std::nullopt;
}

EncodedText kept_tokens(std::string const& key, std::function<std::vector<std::int32_t>()> const& encode) {
  auto const cache = cache_folder();
  auto const path = cache / "tokens" / key;
  if (auto kept = cache.empty() ? std::nullopt : EncodedText::read(path, key)) return *kept;
  auto const text = in_memory(encode());
  if (cache.empty()) return text;
  std::error_code ignored;
  fs::create_directories(path.parent_path(), ignored);
  try {
    AtomicFile file(path);
    file.write(header_of(key, text.tokens));
    file.write(std::as_bytes(text.tokens));
    file.commit();
  } catch (Error const&) {  // a full disk, a folder of somebody else: the tokens are there all the same
  }
  return text;
}

std::vector<Field> TextSettings::fields() {
  return {
      field(&path, "path", "text file, or a folder of text files, relative to the configuration, then to the data folder"),
      field(&name, "name", "instead of path: a data set of the catalogue, fetched if needed"), field(&tokenizer, "tokenizer", "tokenizer"),
      field(&separator, "separator",
            "what ends a document, where the tokenizer's end-of-text token is inserted: none, file (each file is a document), line "
            "(each line), blank_line, or the text of a line that separates documents"),
      field(&validation, "validation", "fraction that is held out, from the end (unless the data set has a validation file)").in(0, 0.9)};
}

std::optional<std::string> TextSettings::contradiction() {
  if (path && name) return "name: give either path or name, not both";
  if (!path && !name) return "path: give a path, or the name of a data set of the catalogue";
  return std::nullopt;
}

TextDataset::TextDataset(TextFiles const& text, std::string origin, TextSettings const& settings, DataContext const& context,
                         std::optional<TextFiles> const& held_out, std::string const& held_out_origin)
    : origin_(std::move(origin)), separator_(settings.separator), seed_(context.seed) {
  Sha256 content;
  content.update(std::as_bytes(std::span(text.content)));
  facts_.files["text"] = {origin_, content.hex()};
  if (held_out) {
    facts_.files["held_out"] = {held_out_origin, sha256(held_out->content)};
    content.update(std::as_bytes(std::span(held_out->content)));
  }

  TextPart train = about_file(origin_, [&] { return part_of(text); }), rest;
  auto const joined = held_out ? std::string(train.text).append(without_byte_order_mark(held_out->content)) : std::string();
  auto const everything = held_out ? std::string_view(joined) : train.text;
  if (held_out)
    rest = about_file(held_out_origin, [&] { return part_of(*held_out); });
  else
    std::tie(train, rest) = split(train, cuts_characters(settings.tokenizer), settings.validation);
  auto noting = context;
  noting.tokenizer_files = &facts_.files;
  facts_.tokenizer = facts_.source_tokenizer =
      about_file(origin_, [&] { return make_tokenizer(settings.tokenizer, train.text, noting, everything); });
  if (separator_ != "none" && !facts_.tokenizer->end())
    throw Error(
        fmt::format("data.separator: a tokenizer of kind '{}' has no token for the end of a document; use kind bpe or words, or leave the "
                    "separator out",
                    settings.tokenizer.kind));
  Index const words = facts_.tokenizer->vocabulary();
  facts_.signature = {{.name = "inputs", .classes = words}, {.name = "next", .classes = words}};
  train_ = about_file(origin_, [&] { return encoded(train); });
  facts_.description = {
      {"file", origin_}, {"sha256", content.hex()}, {"vocabulary", words}, {"tokens", {{"training", train_.tokens.size()}}}};
  about_file(origin_, [&] { hold_out(rest, "validation"); });
  if (train_.tokens.size() < 2 || held_out_.tokens.size() == 1 || (settings.validation > 0 && held_out_.tokens.empty()))
    throw FileError(fmt::format("{}: too short: {} tokens for training and {} for validation (each needs 2)", origin_, train_.tokens.size(),
                                held_out_.tokens.size()));
}

TextDataset::TextPart TextDataset::part_of(TextFiles const& files) const {
  auto const text = without_byte_order_mark(files.content);
  auto begins = files.begins;
  for (auto& begin : begins) begin -= std::min(begin, files.content.size() - text.size());
  return {text, documents_of(text, begins, separator_)};
}

std::pair<TextDataset::TextPart, TextDataset::TextPart> TextDataset::split(TextPart const& whole, bool cuts_characters,
                                                                           double fraction) const {
  auto const begins_character = [&](char byte) { return cuts_characters || (byte & 0xC0) != 0x80; };
  auto const characters = std::ranges::count_if(whole.text, begins_character);
  auto kept = static_cast<std::ptrdiff_t>(static_cast<double>(characters) * (1 - fraction));
  std::size_t cut = 0;
  while (cut < whole.text.size() && (kept > 0 || !begins_character(whole.text[cut]))) kept -= begins_character(whole.text[cut++]) ? 1 : 0;
  if (separator_ == "none")
    return {{whole.text.substr(0, cut), {whole.text.substr(0, cut)}}, {whole.text.substr(cut), {whole.text.substr(cut)}}};
  auto const first = std::ranges::find_if(whole.documents, [&](auto document) { return document.data() >= whole.text.data() + cut; });
  cut = first == whole.documents.end() ? whole.text.size() : static_cast<std::size_t>(first->data() - whole.text.data());
  return {{whole.text.substr(0, cut), {whole.documents.begin(), first}}, {whole.text.substr(cut), {first, whole.documents.end()}}};
}

std::vector<std::int32_t> encode_documents(std::vector<std::string_view> const& documents, Tokenizer const& tokenizer,
                                           Separator const& separator) {
  std::vector<std::int32_t> all;
  for (auto const document : documents) {
    auto tokens = tokenizer.encode(document);
    if (tokenizer.begin()) tokens.erase(tokens.begin());
    if (separator != "none") tokens.push_back(static_cast<std::int32_t>(*tokenizer.end()));
    if (documents.size() == 1) return tokens;
    all.insert(all.end(), tokens.begin(), tokens.end());
  }
  return all;
}

EncodedText TextDataset::encoded(TextPart const& part) const {
  constexpr std::size_t worth_keeping = 8 << 20;  // bytes that take byte pairs a tenth of a second, and need 10 MB for each process
  if (!facts_.tokenizer->slow() || part.text.size() < worth_keeping)
    return in_memory(encode_documents(part.documents, *facts_.tokenizer, separator_));
  Sha256 key;
  auto const add = [&](std::string_view text) { key.update(std::as_bytes(std::span(text))); };
  add(facts_.tokenizer->json());
  add(separator_ == "none" ? "\none text" : "\ndocuments");
  for (auto const document : part.documents) add(fmt::format("\n{}\n", document.size())), add(document);
  return kept_tokens(key.hex(), [&] { return encode_documents(part.documents, *facts_.tokenizer, separator_); });
}

void TextDataset::hold_out(TextPart const& part, char const* split) {
  held_out_ = encoded(part);
  facts_.held_out_units = units_of(part.text, held_out_.tokens.size(), *facts_.tokenizer);
  auto& tokens = facts_.description["tokens"];
  tokens = {{"training", tokens["training"]}, {split, held_out_.tokens.size()}};
  facts_.ngrams = std::async(std::launch::deferred, [train = train_, held_out = held_out_, words = vocabulary()] {
    return held_out.tokens.empty() ? std::vector<double>() : witten_bell(train.tokens, held_out.tokens, words);
  });
}

std::optional<TextUnits> units_of(std::string_view text, std::size_t tokens, Tokenizer const& tokenizer) {
  if (text.empty() || tokenizer.unknown_words(text) > 0) return std::nullopt;
  return TextUnits{static_cast<double>(tokens), words_in(text), static_cast<double>(text.size())};
}

double words_in(std::string_view text) { return static_cast<double>(std::ssize(words_of(text)) + std::ranges::count(text, '\n')); }

void TextDataset::test_on(TextFiles const& text, std::string const& origin) {
  about_file(origin, [&] { hold_out(part_of(text), "test"); });
  if (held_out_.tokens.size() < 2)
    throw FileError(fmt::format("{}: too short to test on: {} tokens (it needs 2)", origin, held_out_.tokens.size()));
  facts_.files["test"] = {origin, sha256(text.content)};
  facts_.description["test"] = {{"file", origin}, {"sha256", facts_.files["test"].sha256}};
}

Batch TextDataset::training(Index index, Index batch, Index context) const {
  auto const tokens = static_cast<Index>(train_.tokens.size());
  if (tokens <= context)
    throw FileError(
        fmt::format("{}: its {} training tokens are too few for a context of {} (which needs {})", origin_, tokens, context, context + 1));
  Tensor inputs({batch, context}, DType::int64), next({batch, context}, DType::int64);
  auto input = inputs.mutable_data<std::int64_t>().begin(), following = next.mutable_data<std::int64_t>().begin();
  Stream const offsets(seed_, "data");
  for (Index row = 0; row < batch; ++row) {
    auto const offset = offsets.below(static_cast<std::uint64_t>(index * batch + row), static_cast<std::uint64_t>(tokens - context));
    auto const first = train_.tokens.begin() + static_cast<std::ptrdiff_t>(offset);
    input = std::copy_n(first, context, input);
    following = std::copy_n(first + 1, context, following);
  }
  return {{"inputs", inputs}, {"next", next}};
}

Index TextDataset::windows(Index context) const {
  auto const predictions = std::max<Index>(static_cast<Index>(held_out_.tokens.size()) - 1, 0);
  return (predictions + context - 1) / context;
}

Index TextDataset::validation_batches(Index batch, Index context) const { return (windows(context) + batch - 1) / batch; }

Batch TextDataset::validation(Index index, Index batch, Index context) const {
  auto const [first, rows] = rows_of_batch("validation", index, batch, windows(context));
  Tensor inputs = Tensor::full({rows, context}, 0, DType::int64), next = Tensor::full({rows, context}, -1, DType::int64);
  auto const begin = held_out_.tokens.begin() + first * context;  // the rows follow each other, so all are one stretch
  auto const predictions = std::min<std::ptrdiff_t>(rows * context, held_out_.tokens.end() - begin - 1);
  std::copy_n(begin, predictions, inputs.mutable_data<std::int64_t>().begin());
  std::copy_n(begin + 1, predictions, next.mutable_data<std::int64_t>().begin());
  Batch result{{"inputs", inputs}, {"next", next}};
  if (predictions == rows * context) return result;
  std::vector<Index> lengths(static_cast<std::size_t>(rows), context);
  lengths.back() = predictions - (rows - 1) * context;
  result.set("lengths", Tensor::of(lengths, {rows}));
  return result;
}

}  // namespace heed
