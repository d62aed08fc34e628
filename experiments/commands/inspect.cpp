#include "experiments/commands/inspect.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <iostream>
#include <numeric>
#include <sstream>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "autograd/graph.hpp"
#include "autograd/ops/softmax.hpp"
#include "experiments/commands/search_options.hpp"
#include "experiments/commands/translator.hpp"
#include "experiments/config/table.hpp"
#include "experiments/data/examples/dataset.hpp"
#include "experiments/data/view.hpp"
#include "experiments/metric/probe/looks.hpp"
#include "experiments/metric/spans.hpp"
#include "experiments/report/picture_figure.hpp"
#include "experiments/run/command.hpp"
#include "experiments/run/run_data.hpp"
#include "nn/files/utf8.hpp"

namespace heed {

namespace fs = std::filesystem;

namespace {

std::string to_right(std::string const& text, std::size_t width) {
  auto const taken = columns(text);
  return (taken < width ? std::string(width - taken, ' ') : std::string()) + text;
}

std::string to_left(std::string const& text, std::size_t width) {
  auto const taken = columns(text);
  return text + (taken < width ? std::string(width - taken, ' ') : std::string());
}

std::string hundredths(double weight) {
  if (weight == 0) return "·";
  return std::isfinite(weight) ? fmt::format("{:.0f}", 100 * weight) : "NaN";
}

template <class F>
auto checked(char const* argument, F const& f) try {
  return f();
} catch (Error const& error) {
  throw ConfigError(argument, error.what());
}

/// A run's model, and what it is shown.
struct Subject {
  explicit Subject(InspectOptions const& options)
      : path(find_run(options.run, options.places)), run(open_run(path, weights_named(options.weights))) {
    if (!run.tokenizer.empty()) tokenizers.inputs = tokenizer_of(run, path.string());
    tokenizers.added = run.data["inputs"].added;
    bool const sees = sees_pictures(run);
    if (options.row && !sees)
      throw ConfigError("--row", fmt::format("{}, of kind {}, sees no pictures", path.string(), run.settings.model.kind));
    if (sees)
      see_picture(options);
    else if (reads_source(run))
      read_pair(options);
    else if (predicts(*run.model, "label") || predicts(*run.model, "span"))
      read_example(options);
    else
      read_text(options);
  }

  static bool sees_pictures(TrainedModel const& run) {
    return std::ranges::any_of(needs_of(run.settings.model), [](Need const& need) { return need.picture; });
  }

  void see_picture(InspectOptions const& options) {
    if (!options.text.empty()) throw ConfigError("--text", fmt::format("{} sees pictures of its data: --row says which", path.string()));
    if (!options.row) throw ConfigError("--row", "is needed: which of the held-out pictures, from 1");
    if (!tokenizers.inputs) throw ConfigError(path.string(), "the run's data have no words");
    auto const data = data_of(run, path, options.places);
    std::int64_t const context = run.model->context();
    if (*options.row < 1 || *options.row > data->validation_batches(1, context))
      throw ConfigError("--row",
                        fmt::format("there is no picture {}: the data hold out {}", *options.row, data->validation_batches(1, context)));
    batch = data->validation(*options.row - 1, 1, context);
    asked = data->reference(*options.row - 1);
    auto const& words = *tokenizers.inputs;
    Batch given;
    for (Need const& need : needs_of(run.settings.model))
      if (need.picture) given.set(need.name, batch[need.name]);
    std::vector<std::int64_t> caption;
    if (options.target) {
      auto const tokens = encoded(*options.target);
      caption.assign(tokens.begin() + 1, tokens.end());
    } else {
      caption = beam(*run.model, given, *words.begin(), *words.end(), context, options.beam).front().front().tokens;
      written = words.decode(caption);
    }
    caption.insert(caption.begin(), *words.begin());
    given.set("inputs", row_of(caption));
    batch = given;
  }

  /// A text of one example, or two, with the model's special tokens; and what the model says of it.
  void read_example(InspectOptions const& options) {
    bool const asks = predicts(*run.model, "span");
    if (!tokenizers.inputs) throw ConfigError(path.string(), "the run's data have no text");
    if (!asks && run.classes.empty())
      throw ConfigError("--text", fmt::format("{} chooses among options, which are not asked for", path.string()));
    if (asks && !options.target) throw ConfigError("--target", "is needed: the passage in which the answer is looked for");
    Example const example{.first = options.text,
                          .second = options.target.value_or(""),
                          .label = asks ? "" : run.classes.front(),
                          .span = asks,
                          .place = "--text"};
    auto const shown = [&](bool both_orders) {
      Examples examples{{example}, {example}, run.classes, both_orders, {}};
      auto data = std::make_unique<ExamplesDataset>(std::move(examples), tokenizers.inputs, 1, 1);
      return viewed(std::move(data), run.settings.model, 1);
    };
    auto const data = checked("--text", [&] { return shown(run.data["inputs"].sequences > 1 && options.target); });
    batch = data->validation(0, 1, run.model->context());
    NoGrad const quiet;
    auto const predictions = run.model->run(batch, {}).predictions;
    written = asks ? said_of(span_guesses(batch, predictions).front(), *data) : said_of(predictions.front().head.logits());
    if (batch["inputs"].rank() == 3) batch = shown(false)->validation(0, 1, run.model->context());
    for (char const* const answer : {"label", "span"}) batch.set(answer, {});
  }

  /// "positive 0.93, negative 0.07"
  std::string said_of(Tensor const& logits) const {
    auto const shares = softmax(logits, -1).to_vector();
    std::vector<std::size_t> order(shares.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::greater(), [&](std::size_t i) { return shares[i]; });
    std::string text;
    for (std::size_t const i : order) text += fmt::format("{}{} {:.2f}", text.empty() ? "" : ", ", run.classes[i], shares[i]);
    return text;
  }
  std::string said_of(SpanGuess const& guess, Dataset const& data) const {
    auto const text = text_of(guess, data, batch, 0);
    return text.empty() ? "(no answer)" : text;
  }

  void read_text(InspectOptions const& options) {
    if (options.target)
      throw ConfigError("--target",
                        fmt::format("{}, of kind {}, reads no source: its text is all there is", path.string(), run.settings.model.kind));
    auto const tokens = tokenizers.inputs ? encoded(options.text) : numbers(options.text, "--text", "inputs");
    if (tokens.empty()) throw ConfigError("--text", "holds no tokens");
    auto const length = std::ssize(tokens);
    if (auto const limit = run.model->limit(); limit && length > *limit)
      throw ConfigError("--text", fmt::format("is {} tokens long, but the model reads {} at most", length, *limit));
    check_length("--text", tokens.size());
    batch = {{"inputs", row_of(tokens)}};
  }

  void read_pair(InspectOptions const& options) {
    if (!tokenizers.inputs) {
      if (!options.target) throw ConfigError("--target", "is needed: the run's data have no text, so that nothing can be translated");
      auto const source = numbers(options.text, "--text", "source"), inputs = numbers(*options.target, "--target", "inputs");
      check_length("--text", source.size());
      check_length("--target", inputs.size());
      batch = {{"source", row_of(source)}, {"inputs", row_of(inputs)}};
      return;
    }
    Translator const translator(run, path.string());
    tokenizers.source = translator.source_words();
    auto const source = checked("--text", [&] { return translator.read(options.text); });
    if (source.empty()) throw ConfigError("--text", "holds no words");
    check_length("--text", source.size());
    std::vector<std::int64_t> target;
    if (options.target) {
      auto const given = checked("--target", [&] { return translator.read_target(*options.target); });
      target.assign(given.begin(), given.end());
      check_length("--target", target.size());
    } else {
      target = translator.translate(std::span(&source, 1), options.beam).front().front().tokens;
      written = translator.text(target);
    }
    batch = translator.batch(source, target);
  }

  static Tensor row_of(std::vector<std::int64_t> const& tokens) { return Tensor::of(tokens, {1, std::ssize(tokens)}); }

  /// `mask_text` in it is the token of this name, of a model that has one.
  std::vector<std::int64_t> encoded(std::string_view text) const try {
    auto const& tokenizer = *tokenizers.inputs;
    auto const& added = run.data["inputs"].added;
    bool const masks = std::ranges::find(added, mask_text) != added.end();
    std::vector<std::int64_t> result;
    for (bool first = true;; first = false) {
      auto const end = masks ? text.find(mask_text) : text.npos;
      auto const part = tokenizer.encode(text.substr(0, end));
      bool const begins_again = !first && tokenizer.begin() && !part.empty();  // a sentence, which it does not
      result.insert(result.end(), part.begin() + (begins_again ? 1 : 0), part.end());
      if (end == text.npos) return result;
      result.push_back(run.data["inputs"].token(mask_text));
      text.remove_prefix(end + mask_text.size());
    }
  } catch (Error const& error) {
    throw ConfigError("--text", error.what());
  }

  std::vector<std::int64_t> numbers(std::string const& text, char const* argument, char const* part) const {
    auto const classes = run.data[part].classes;
    std::vector<std::int64_t> result;
    std::istringstream words(text);
    for (std::string word; words >> word;) {
      std::int64_t token = -1;
      auto const [end, error] = std::from_chars(word.data(), word.data() + word.size(), token);
      if (error != std::errc() || end != word.data() + word.size() || token < 0 || token >= classes)
        throw ConfigError(argument,
                          fmt::format("'{}' is not the number of a token, 0 … {} (the run's data have no text)", word, classes - 1));
      result.push_back(token);
    }
    if (result.empty()) throw ConfigError(argument, "holds no tokens");
    return result;
  }

  /// Throws ConfigError for more tokens than maps are made of, whose memory grows with the square, unless the model is trained on so many.
  void check_length(char const* argument, std::size_t tokens) const {
    constexpr std::int64_t enough = 2048;
    if (auto const most = std::max(enough, run.model->context()); static_cast<std::int64_t>(tokens) > most)
      throw ConfigError(argument, fmt::format("is {} tokens long, but {} at most are inspected; give a part of it", tokens, most));
  }

  /// Throws ConfigError for what the model has against such rows.
  Looks looks() const try { return look(*run.model, batch, tokenizers); } catch (Error const& error) {
    throw ConfigError(path.string(), error.what());
  }

  /// Whether what it has written is an answer to an example.
  bool says() const { return predicts(*run.model, "label") || predicts(*run.model, "span"); }

  fs::path path;
  TrainedModel run;
  PartTokenizers tokenizers;
  Batch batch;
  std::optional<std::string> written;  ///< a target of the model's own
  std::optional<std::string> asked;    ///< what a picture's caption should be
};

/// "layer 3: decoder.blocks.0.cross_attention, inputs look at source"
std::string heading(Looks const& looks, std::size_t layer) {
  auto const& of = looks.layers[layer].of;
  if (looks.only_inputs()) return fmt::format("layer {}", layer);
  std::string const way = of.queries.empty() || of.keys.empty() ? "" : fmt::format(", {} look at {}", of.queries, of.keys);
  return fmt::format("layer {}: {}{}", layer, looks.layers[layer].layer, way);
}

}  // namespace

std::string attention_table(Tensor const& weights, std::vector<std::string> const& queries, std::vector<std::string> const& keys,
                            std::size_t width) {
  std::size_t head = 0, cell = 3;  // "100"
  for (auto const& query : queries) head = std::max(head, std::min<std::size_t>(columns(query), 12));
  for (auto const& key : keys) cell = std::max(cell, std::min<std::size_t>(columns(key), 6));
  auto const room = width == 0 ? keys.size() : width > head + 2 ? (width - head - 2) / (cell + 1) : 0;
  auto const stripe = std::max<std::size_t>(room, 1);

  std::string page;
  for (std::size_t first = 0; first < keys.size(); first += stripe) {
    auto const last = std::min(first + stripe, keys.size());
    std::string line = "  " + std::string(head, ' ');
    for (auto j = first; j < last; ++j) line += " " + to_right(cut(keys[j], cell), cell);
    page += line + "\n";
    for (std::size_t i = 0; i < queries.size(); ++i) {
      line = "  " + to_left(cut(queries[i], head), head);
      for (auto j = first; j < last; ++j)
        line += " " + to_right(hundredths(weights.at(static_cast<std::int64_t>(i * keys.size() + j))), cell);
      page += line + "\n";
    }
    if (last < keys.size()) page += "\n";
  }
  return page;
}

namespace {

void write_tables(Looks const& looks, std::size_t width, std::ostream& out) {
  out << "weights in hundredths: a row a query, a column a key; · is exactly 0\n";
  for (std::size_t layer = 0; layer < looks.layers.size() && out; ++layer) {
    auto const& of = looks.layers[layer].of;
    Tensor const& weights = looks.layers[layer].weights;
    std::int64_t const heads = weights.size(1), queries = weights.size(2), keys = weights.size(3);
    Tensor const maps = weights.viewed({heads, queries, keys});
    for (std::int64_t head = 0; head < heads; ++head)
      out << fmt::format("\n{}, head {}\n", heading(looks, layer), head)
          << attention_table(maps.rows(head, 1).viewed({queries, keys}), looks.axis(of.queries, 0, queries), looks.axis(of.keys, 0, keys),
                             width);
  }
}

}  // namespace

Exit inspect(InspectOptions const& options, std::ostream& out) {
  if (!options.picture.empty()) check_picture_file(options.picture);
  Subject const subject(options);
  auto const looks = subject.looks();
  if (subject.run.foreign && options.save.empty())
    throw ConfigError("--save", fmt::format("is needed: {} is no run's folder, and is left as it is", subject.path.string()));
  fs::path const folder = fs::is_directory(subject.path) ? subject.path : subject.path.parent_path();
  fs::path const file = options.save.empty() ? folder / "attention.npz" : options.save;
  write_npz(file, looks.arrays(true));
  auto const looked = looked_at(looks);
  if (!options.picture.empty()) {
    if (looked.words.empty()) throw ConfigError("--picture", fmt::format("no attention of {} looks at a picture", subject.path.string()));
    write_picture(options.picture, looked);
  }
  if (options.quiet) return Exit::done;

  if (auto const said = subject.run.said(subject.path); !said.empty()) out << said << '\n';
  auto const shown = [&](std::string const& text) { return options.printable ? printable(text) : text; };
  if (subject.asked) out << fmt::format("the data say:     {}\n", shown(*subject.asked));
  if (subject.written) out << fmt::format("the model {} {}\n", subject.says() ? "says:  " : "writes:", shown(*subject.written));
  if (!looked.words.empty()) out << "weights in hundredths, as the fields lie in the picture; · is exactly 0\n\n" << picture_table(looked);
  if (looked.words.empty()) write_tables(looks, options.width, out);
  out << fmt::format("{}saved in {}\n", looked.words.empty() ? "\n" : "", file.string());
  if (!options.picture.empty()) out << fmt::format("drawn in {}\n", options.picture.string());
  return Exit::done;
}

namespace {

void declare_inspect(CLI::App& app, InspectOptions& options) {
  add_argument(app, "RUN", "a run's folder or name, or its checkpoint", options.run);
  auto const* const reads =
      add_text(app, "--text", "TEXT", "what the model reads; [MASK] is a masked model's own token (data without text: numbers of tokens)",
               options.text);
  auto const* const row =
      add_number<std::int64_t>(app, "--row", options.row, 1, 1e9, "of a model that sees pictures: which of the held-out ones");
  app.callback([reads, row] {
    if (reads->count() + row->count() == 0) throw CLI::RequiredError("--text or --row");
  });
  add_text(app, "--picture", "FILE", ".svg, .pdf or .png: the picture, and where each word of its caption looked", options.picture);
  add_text(
      app, "--target", "TEXT",
      "of a model that reads a source or sees a picture: what it has written (default: what it writes itself); of one that judges pairs or "
      "finds answers: the second text",
      options.target);
  add_weights(app, options.weights);
  add_beam(app, options.beam);
  add_text(app, "--save", "FILE", "where the weights go (default: attention.npz in the run's folder)", options.save);
}

Exit inspect_at_terminal(InspectOptions options) {
  options.printable = ::isatty(STDOUT_FILENO) != 0;
  winsize size{};
  if (::isatty(STDOUT_FILENO) != 0 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) options.width = size.ws_col;
  return inspect(options, std::cout);
}

Declared<Command> const declared_command{
    {.place = 9,
     .name = "inspect",
     .usage = "RUN --text TEXT | --row N",
     .help = "show what each head of a trained model attends to in a text",
     .footer =
         "FILE holds tokens, labels and layer0.weights, layer1.weights, … [heads, queries, keys], for numpy.load; of a model that reads a\n"
         "source, source.tokens, inputs.tokens, … and for each layer what looks at what, layer0.of.\n\n"
         "examples:\n"
         "  heed inspect grammar --text \"the dogs that\"\n"
         "  heed inspect runs/shakespeare --text \"ROMEO:\" --save romeo.npz --quiet\n"
         "  heed inspect multi30k --text \"ein mann geht .\" --target \"a man walks .\"\n"
         "  heed inspect captions-soft --row 3 --picture where.png",
     .add = with_options<InspectOptions>(declare_inspect, [](InspectOptions const& options) { return inspect_at_terminal(options); })}};

}  // namespace

}  // namespace heed
