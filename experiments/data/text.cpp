#include "experiments/data/text.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/error.hpp"
#include "autograd/random.hpp"
#include "experiments/data/catalogue.hpp"
#include "experiments/data/files.hpp"
#include "experiments/data/ngram.hpp"
#include "experiments/text/utf8.hpp"
#include "nn/files/sha256.hpp"

namespace heed {
namespace {

namespace fs = std::filesystem;

Tokenizer make_tokenizer(std::string const& kind, std::string_view text) {
  return kind == "byte" ? Tokenizer::bytes() : Tokenizer::characters(text);
}

/// Calls f; what it has to say about the text is about the file.
template <class F>
auto about_file(std::string const& origin, F f) {
  try {
    return f();
  } catch (Error const& error) {
    throw FileError(origin + ": " + error.what());
  }
}

std::unique_ptr<TextDataset> open_parts(TextSettings const& settings, DataContext const& context, CatalogueEntry const* entry) {
  auto const opened = [&](fs::path const& path, std::optional<fs::path> const& held_out) {
    auto const apart = held_out ? std::optional(read_text(*held_out)) : std::nullopt;
    return std::make_unique<TextDataset>(read_text(path), path.string(), settings.tokenizer, settings.validation, apart, context.seed,
                                         held_out.value_or("").string());
  };
  if (entry == nullptr) return opened(locate(settings.path.value(), context), std::nullopt);
  if (auto const* whole = entry->part("text")) return opened(obtain(*whole, context), std::nullopt);
  auto const train = obtain(*entry->part("train"), context);
  return opened(train, obtain(*entry->part("validation"), context));
}

std::unique_ptr<Dataset> open_text(TextSettings const& settings, DataContext const& context) {
  auto const* const entry = settings.name ? &catalogue_entry(catalogue(), *settings.name) : nullptr;
  auto const* const test = entry != nullptr ? entry->part("test") : nullptr;
  if (context.held_out == "test" && test == nullptr) {
    throw Error(entry == nullptr ? "data.path: a text file has no test part, its end alone is held out; a data set of the catalogue with a "
                                   "file `test` has one (data.name)"
                                 : fmt::format("data.name: '{}' has no file `test` in the catalogue", entry->name));
  }
  auto data = open_parts(settings, context, entry);
  if (context.held_out == "test") {
    auto const path = obtain(*test, context);
    data->test_on(read_text(path), path.string());
  }
  return data;
}

bool const registered = register_data("text", "a text file, by characters or bytes", open_text, DataParts::validation_and_test);

}  // namespace

std::vector<Field> TextSettings::fields() {
  return {{.name = "path", .target = &path, .help = "text file, relative to the configuration, then to the data folder"},
          {.name = "name", .target = &name, .help = "instead of path: a data set of the catalogue, fetched if needed"},
          {.name = "tokenizer", .target = &tokenizer, .help = "char: UTF-8 code points; byte: 256 bytes", .words = {"char", "byte"}},
          {.name = "validation",
           .target = &validation,
           .help = "fraction at the end that is held out (unless the data set has a validation file)",
           .least = 0,
           .greatest = 0.9}};
}

std::optional<std::string> TextSettings::contradiction() {
  if (path && name) return "name: give either path or name, not both";
  if (!path && !name) return "path: give a path, or the name of a data set of the catalogue";
  return std::nullopt;
}

TextDataset::TextDataset(std::string_view text, std::string origin, std::string const& tokenizer, double fraction,
                         std::optional<std::string_view> held_out, std::uint64_t seed, std::string const& held_out_origin)
    : origin_(std::move(origin)), seed_(seed) {
  Sha256 content;
  content.update(std::as_bytes(std::span(text)));
  read_["text"] = {origin_, content.hex()};
  if (held_out) {
    read_["held_out"] = {held_out_origin, sha256(std::as_bytes(std::span(*held_out)))};
    content.update(std::as_bytes(std::span(*held_out)));
  }
  sha256_ = content.hex();
  text = without_byte_order_mark(text);
  if (held_out) held_out = without_byte_order_mark(*held_out);
  auto const joined = held_out ? std::string(text).append(*held_out) : std::string();
  auto const everything = held_out ? std::string_view(joined) : text;
  tokenizer_ = about_file(origin_, [&] { return make_tokenizer(tokenizer, everything); });
  train_ = about_file(origin_, [&] { return tokenizer_.encode(text); });
  if (held_out) {
    held_out_ = about_file(origin_, [&] { return tokenizer_.encode(*held_out); });
  } else {
    auto const kept = static_cast<std::ptrdiff_t>(static_cast<double>(train_.size()) * (1 - fraction));
    held_out_.assign(train_.begin() + kept, train_.end());
    train_.resize(static_cast<std::size_t>(kept));
  }
  if (train_.size() < 2 || held_out_.size() == 1 || (fraction > 0 && held_out_.empty()))
    throw FileError(fmt::format("{}: too short: {} tokens for training and {} for validation (each needs 2)", origin_, train_.size(),
                                held_out_.size()));
}

void TextDataset::test_on(std::string_view text, std::string origin) {
  held_out_ = about_file(origin, [&] { return tokenizer_.encode(without_byte_order_mark(text)); });
  if (held_out_.size() < 2) throw FileError(fmt::format("{}: too short to test on: {} tokens (it needs 2)", origin, held_out_.size()));
  read_["test"] = {std::move(origin), sha256(std::as_bytes(std::span(text)))};
}

Batch TextDataset::training(std::int64_t index, std::int64_t batch, std::int64_t context) const {
  auto const tokens = static_cast<std::int64_t>(train_.size());
  if (tokens <= context)
    throw FileError(
        fmt::format("{}: its {} training tokens are too few for a context of {} (which needs {})", origin_, tokens, context, context + 1));
  Tensor inputs({batch, context}, DType::int64), next({batch, context}, DType::int64);
  auto input = inputs.mutable_data<std::int64_t>().begin(), following = next.mutable_data<std::int64_t>().begin();
  Stream const offsets(seed_, "data");
  for (std::int64_t row = 0; row < batch; ++row) {
    auto const offset = offsets.below(static_cast<std::uint64_t>(index * batch + row), static_cast<std::uint64_t>(tokens - context));
    auto const first = train_.begin() + static_cast<std::ptrdiff_t>(offset);
    input = std::copy_n(first, context, input);
    following = std::copy_n(first + 1, context, following);
  }
  return {{"inputs", inputs}, {"next", next}};
}

std::int64_t TextDataset::windows(std::int64_t context) const {
  auto const predictions = std::max<std::int64_t>(static_cast<std::int64_t>(held_out_.size()) - 1, 0);
  return (predictions + context - 1) / context;
}

std::int64_t TextDataset::validation_batches(std::int64_t batch, std::int64_t context) const {
  return (windows(context) + batch - 1) / batch;
}

Batch TextDataset::validation(std::int64_t index, std::int64_t batch, std::int64_t context) const {
  auto const first = index * batch, rows = std::min(batch, windows(context) - first);
  if (index < 0 || rows <= 0)
    throw Error(fmt::format("validation batch {} of {} does not exist", index, validation_batches(batch, context)));
  Tensor inputs = Tensor::full({rows, context}, 0, DType::int64), next = Tensor::full({rows, context}, -1, DType::int64);
  auto const begin = held_out_.begin() + first * context;  // the rows follow each other, so all are one stretch
  auto const predictions = std::min<std::ptrdiff_t>(rows * context, held_out_.end() - begin - 1);
  std::copy_n(begin, predictions, inputs.mutable_data<std::int64_t>().begin());
  std::copy_n(begin + 1, predictions, next.mutable_data<std::int64_t>().begin());
  Batch result{{"inputs", inputs}, {"next", next}};
  if (predictions == rows * context) return result;
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(rows), context);
  lengths.back() = predictions - (rows - 1) * context;
  result.set("lengths", Tensor::of(lengths, {rows}));
  return result;
}

std::vector<double> const& TextDataset::ngram_losses() const {
  std::call_once(counted_, [&] {
    if (!held_out_.empty()) ngram_losses_ = witten_bell(train_, held_out_, vocabulary());
  });
  return ngram_losses_;
}

std::vector<std::pair<std::string, double>> TextDataset::yardsticks() const {
  std::vector<std::pair<std::string, double>> result;
  for (auto loss : ngram_losses()) result.emplace_back(fmt::format("{}-gram", result.size() + 1), loss);
  return result;
}

nlohmann::json TextDataset::describe() const {
  auto const test = read_.find("test");
  nlohmann::json result{{"file", origin_},
                        {"sha256", sha256_},
                        {"vocabulary", vocabulary()},
                        {"tokens", {{"training", train_.size()}, {test == read_.end() ? "validation" : "test", held_out_.size()}}}};
  if (test != read_.end()) result["test"] = {{"file", test->second.file}, {"sha256", test->second.sha256}};
  auto const& losses = ngram_losses();
  for (std::size_t order = 0; order < losses.size(); ++order) result["ngram"][std::to_string(order + 1)] = losses[order];
  return result;
}

}  // namespace heed
