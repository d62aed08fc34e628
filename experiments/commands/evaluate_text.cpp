#include <cmath>
#include <cstring>
#include <numbers>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "experiments/commands/commands.hpp"
#include "experiments/config/table.hpp"
#include "experiments/data/files.hpp"
#include "experiments/data/text.hpp"
#include "experiments/data/tokenizer.hpp"
#include "experiments/metric/info.hpp"
#include "experiments/metric/row.hpp"
#include "experiments/metric/text_loss.hpp"
#include "experiments/program/progress.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/json.hpp"
#include "nn/files/sha256.hpp"
#include "nn/files/utf8.hpp"

namespace heed {

namespace {

/// A text as a model reads it.
struct Encoded {
  std::vector<Index> tokens;
  std::optional<TextUnits> units = {};  ///< nothing: they are not known
  TextUnits predicted = {};             ///< of what is behind the first token
};

/// `as`: how the run's own text was read; null: it was none.
Encoded encoded(std::filesystem::path const& file, Tokenizer const& tokenizer, TextSettings const* as) {
  std::string const content = read_text(file);
  std::string_view const text = without_byte_order_mark(content);
  Encoded result;
  try {
    auto const tokens = as ? encode_documents(documents_of(text, {0}, as->separator), tokenizer, as->separator) : tokenizer.encode(text);
    bool const marked = !as && tokenizer.begin() && tokenizer.begin() != tokenizer.end();  // which running text is not
    result.tokens.assign(tokens.begin() + (marked ? 1 : 0), tokens.end());
    if (result.tokens.size() > 1) {
      auto const first = tokens.end() - std::ssize(result.tokens);
      auto const rest = text.substr(tokenizer.starts(text, {first, first + 2})[1]);
      result.predicted = {.words = words_in(rest), .bytes = static_cast<double>(rest.size())};
    }
  } catch (Error const& error) {
    throw FileError(fmt::format("{}: {}", file.string(), error.what()));
  }
  result.units = units_of(text, result.tokens.size(), tokenizer);
  return result;
}

/// Numbers of tokens: little-endian int32, one after the other.
Encoded numbers(std::filesystem::path const& file) {
  std::string const content = read_text(file);
  if (content.size() % sizeof(std::int32_t) != 0)
    throw FileError(fmt::format("{}: {} bytes are no whole number of int32", file.string(), content.size()));
  std::vector<std::int32_t> ids(content.size() / sizeof(std::int32_t));
  std::memcpy(ids.data(), content.data(), content.size());
  return {{ids.begin(), ids.end()}};
}

void check_text_options(EvaluateOptions const& options, TrainedModel const& run) {
  if (options.metrics) throw ConfigError("--metrics", "applies to held-out data, not to --text or --ids");
  if (options.split != "validation") throw ConfigError("--split", "applies to held-out data, not to --text or --ids");
  if (options.search.width > 1) throw ConfigError("--beam", "applies to decoded targets, not to a text");
  auto const& reads = input_parts_of(run.settings.model);
  bool const predicts = reads.size() == 2 && reads[0].name == "inputs" && reads[1].name == "targets" && reads[1].view == "next_token";
  if (!predicts)
    throw ConfigError(run.path.string(),
                      fmt::format("its model, of kind {}, does not predict the next token of a text", run.settings.model.kind));
}

Encoded read(EvaluateOptions const& options, TrainedModel const& run) {
  if (!options.ids.empty()) return numbers(options.ids);
  if (run.tokenizer.empty()) throw ConfigError(run.path.string(), "has no tokenizer, so --text cannot be read (use --ids FILE: token ids)");
  return encoded(options.text, *tokenizer_of(run), dynamic_cast<TextSettings const*>(run.settings.data.settings.get()));
}

Row measures_of(TextLoss const& loss, Encoded const& text) {
  double const mean = loss.nats / static_cast<double>(loss.tokens);
  Row all;
  all.set("loss", mean);
  all.set("perplexity", std::exp(mean));
  if (!text.units) return all;
  auto const& [tokens, words, bytes] = text.predicted;
  all.set("bits_per_byte", loss.nats / bytes / std::numbers::ln2);
  all.set("perplexity_per_byte", std::exp(loss.nats / bytes));
  all.set("perplexity_per_word", std::exp(loss.nats / words));
  return all;
}

std::string const& unit_of(std::string const& measure) { return find_metric("validation." + measure)->unit; }

std::string csv_of(Row const& measures) {
  std::string text = "metric,unit,value\n";
  for (auto const& [name, value] : measures.values) text += fmt::format("{},{},{}\n", name, unit_of(name), value);
  return text;
}

}  // namespace

Exit evaluate_text(EvaluateOptions const& options, std::ostream& out) {
  TrainedModel const run = open_run(options, options.dtype);
  check_text_options(options, run);
  auto const& file = options.ids.empty() ? options.text : options.ids;
  Encoded const text = read(options, run);
  auto const stride = options.stride.value_or(run.model->context());
  if (stride > run.model->context())
    throw ConfigError("--stride", fmt::format("{} is more than the model's context of {}", stride, run.model->context()));
  Progress progress(run.settings.name, std::ssize(text.tokens) - 1, 0, options.quiet, "tokens");
  TextLoss loss;
  try {
    loss = text_loss(*run.model, text.tokens, stride, options.batch.value_or(run.settings.train.batch),
                     [&](Index tokens) { progress.update(tokens, ""); });
  } catch (Error const& error) {
    throw FileError(fmt::format("{}: {}", file.string(), error.what()));
  }
  progress.finish();
  auto const measures = measures_of(loss, text);
  if (!options.quiet) {
    out << fmt::format("{} of {}: {} tokens, windows of {}{}\n", file.string(), run.path.string(), text.tokens.size(), run.model->context(),
                       stride < run.model->context() ? fmt::format(", {} apart", stride) : "");
    out << table(mapped(measures.values, [](auto const& measure) {
      return std::vector{measure.first, fmt::format("{:.6g}", measure.second), unit_of(measure.first)};
    }));
    if (options.ids.empty() && !text.units) out << "unknown words became <unk>: bits per byte are not defined\n";
  }
  if (options.save.empty()) return Exit::done;
  nlohmann::ordered_json all{{"model", run.path.string()}, {"file", file.string()},       {"sha256", sha256_of_file(file)},
                             {"weights", run.weights},     {"dtype", run.settings.dtype}, {"context", run.model->context()},
                             {"stride", stride},           {"tokens", loss.tokens}};
  for (auto const& [name, value] : measures.values) all["metrics"][name] = number(value);
  if (text.units) all["text"] = {{"tokens", text.units->tokens}, {"words", text.units->words}, {"bytes", text.units->bytes}};
  write_atomically(options.save, options.save.extension() == ".csv" ? csv_of(measures) : json_text(all, 2) + "\n");
  if (!options.quiet) out << fmt::format("saved in {}\n", options.save.string());
  return Exit::done;
}

}  // namespace heed
