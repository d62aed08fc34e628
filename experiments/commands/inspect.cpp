#include "experiments/commands/inspect.hpp"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <sstream>

#include <fmt/format.h>
#include <unistd.h>

#include "experiments/config/nearest.hpp"
#include "experiments/config/table.hpp"
#include "experiments/metric/evaluated_batch.hpp"
#include "experiments/program/command.hpp"
#include "experiments/report/text_figure.hpp"
#include "nn/files/npz.hpp"
#include "nn/files/number.hpp"
#include "nn/files/utf8.hpp"

namespace heed {

namespace {

/// The blanks that widen a text to so many columns.
std::string blanks(std::string const& text, std::size_t width) { return std::string(width - std::min(width, columns(text)), ' '); }

std::string to_right(std::string const& text, std::size_t width) { return blanks(text, width) + text; }

std::string hundredths(double weight) {
  if (weight == 0) return "·";
  return std::isfinite(weight) ? fmt::format("{:.0f}", 100 * weight) : "NaN";
}

/// A text, for a model of text.
struct InspectedText : Inspected {
  using Inspected::Inspected;

  void show(InspectOptions const& options) override {
    if (options.target)
      throw ConfigError("--target",
                        fmt::format("{}, of kind {}, has no source: give only --text", run.path.string(), run.settings.model.kind));
    batch = {{"inputs", tokens_of(options.text, "--text")}};
  }
};

Declared<Inspection> const text_inspection{inspection_by<InspectedText>(4, [](TrainedModel const&) { return true; })};

/// Opens the run's model and prepares the input that the options name.
std::unique_ptr<Inspected> inspected(InspectOptions const& options) {
  auto run = open_run(options);
  auto const takes = [&](Inspection const& each) { return each.takes(run); };
  auto const& all = Registry<Inspection>::all();  // the last one accepts any model
  auto result = std::ranges::find_if(all, takes)->make(std::move(run));
  if (options.row && !result->by_rows())
    throw ConfigError("--row", fmt::format("{}, of kind {}, sees no pictures", result->run.path.string(), result->run.settings.model.kind));
  result->show(options);
  return result;
}

/// The attention maps of the input. Throws ConfigError if the model rejects the input.
AttentionMaps attention_of(Inspected const& subject) try {
  return record_attention_maps(*subject.run.model, subject.batch, subject.tokenizers);
} catch (Error const& error) {
  throw ConfigError(subject.run.path.string(), error.what());
}

/// "1.3": layer and head.
std::pair<Index, Index> head_named(std::string const& text) {
  auto const dot = text.find('.');
  auto const layer = parsed_number<Index>(text.substr(0, dot)), head = parsed_number<Index>(dot == text.npos ? "" : text.substr(dot + 1));
  if (!layer || !head || *layer < 0 || *head < 0)
    throw ConfigError("--head", fmt::format("wants a layer and a head, such as 0.3, but found '{}'", text));
  return {*layer, *head};
}

/// "layer 3: decoder.blocks.0.cross_attention, inputs attend to source".
std::string heading(AttentionMaps const& attention, std::size_t layer) {
  auto const& of = attention.layers[layer].of;
  if (attention.only_inputs()) return fmt::format("layer {}", layer);
  std::string const way = of.queries.empty() || of.keys.empty() ? "" : fmt::format(", {} attend to {}", of.queries, of.keys);
  return fmt::format("layer {}: {}{}", layer, attention.layers[layer].layer, way);
}

void write_tables(AttentionMaps const& attention, std::size_t width, std::ostream& out) {
  out << "weights in hundredths; rows are queries, columns keys; · is exactly 0\n";
  for (std::size_t layer = 0; layer < attention.layers.size() && out; ++layer) {
    auto const& of = attention.layers[layer].of;
    Tensor const& weights = attention.layers[layer].weights;
    Index const heads = weights.size(1), queries = weights.size(2), keys = weights.size(3);
    Tensor const maps = weights.viewed({heads, queries, keys});
    for (Index head = 0; head < heads; ++head)
      out << fmt::format("\n{}, head {}\n", heading(attention, layer), head)
          << attention_table(maps.rows(head, 1).viewed({queries, keys}), attention.axis(of.queries, 0, queries),
                             attention.axis(of.keys, 0, keys), width);
  }
}

void declare_inspect(CLI::App& app, InspectOptions& options) {
  add_argument(app, "RUN", "a run's folder or name, or its checkpoint", options.run);
  add_text(app, "--text", "TEXT", "input text; [MASK] is the mask token of a masked language model (data without text: token ids)",
           options.text);
  add_number<Index>(app, "--row", options.row, 1, 1e9, "for image models: number of a held-out image, from 1");
  need_one_of(app, "--text", "--row");
  add_text(app, "--picture", "FILE", ".svg, .pdf, .png or .html: the maps of all heads; of an image's caption the map of each word",
           options.picture);
  add_text(app, "--head", "LAYER.HEAD", "with --picture, of a text: one head, such as 0.3",
           [&](std::string const& text) { options.head = head_named(text); });
  add_text(app, "--target", "TEXT",
           "encoder–decoders and image models: the target (default: the model's own output); models of text pairs: the second text",
           options.target);
  add_flag(app, "--heads", options.heads, "instead of maps: the loss without each head, by layer and head");
  add_text(app, "--from", "TEXT", "instead of maps: the loss with each head's outputs from this text, of as many tokens", options.from);
  add_weights(app, options.weights);
  add_beam(app, options.beam);
  add_text(app, "--save", "FILE", "output file of the attention weights (default: attention.npz in the run's folder)", options.save);
}

Declared<Command> const inspect_command{
    {.order = 11,
     .name = "inspect",
     .usage = "RUN --text TEXT | --row N",
     .help = "show the attention weights of every head on a text or image",
     .footer = "FILE is for numpy.load and has tokens, labels and layer0.weights, layer1.weights, … [heads, queries, keys]; for a model "
               "with a\nsource, source.tokens, inputs.tokens, … and, for each layer, layer0.of: its module, and the parts of its queries "
               "and keys.\n\nexamples:\n  heed inspect grammar --text \"the dogs that\"\n  heed inspect runs/shakespeare --text \"ROMEO:\" "
               "--save romeo.npz --quiet\n  heed inspect multi30k --text \"ein mann geht .\" --target \"a man walks .\"\n  heed inspect "
               "captions-soft --row 3 --picture where.png",
     .add = with_options<InspectOptions>(declare_inspect, [](InspectOptions const& given) {
       InspectOptions options = given;
       options.printable = ::isatty(STDOUT_FILENO) != 0;
       if (options.printable) options.width = columns_of(STDOUT_FILENO);
       return inspect(options, std::cout);
     })}};

}  // namespace

Inspected::Inspected(TrainedModel trained) : run(std::move(trained)) {
  if (!run.tokenizer.empty()) tokenizers.inputs = tokenizer_of(run);
  tokenizers.added = run.data["inputs"].added;
}

std::string Inspected::page(InspectOptions const& options, AttentionMaps const& attention) const {
  if (options.picture.empty()) return "";
  auto const figures = checked("--head", [&] { return text_figures(attention, options.head); });
  write_maps(options.picture, options.text, figures);
  return "";
}

Tensor Inspected::tokens_of(std::string const& text, char const* argument) const {
  auto const tokens = tokenizers.inputs ? encoded(text) : numbers(text, argument, "inputs");
  if (tokens.empty()) throw ConfigError(argument, "holds no tokens");
  auto const length = std::ssize(tokens);
  if (auto const limit = run.model->limit(); limit && length > *limit)
    throw ConfigError(argument, fmt::format("is {} tokens long, but the model reads at most {}", length, *limit));
  check_length(argument, tokens.size());
  return row_of(tokens);
}

Tensor Inspected::row_of(std::vector<Index> const& tokens) { return Tensor::of(tokens, {1, std::ssize(tokens)}); }

std::vector<Index> Inspected::encoded(std::string_view text) const try {
  auto const& tokenizer = *tokenizers.inputs;
  auto const& added = run.data["inputs"].added;
  bool const masks = std::ranges::find(added, mask_text) != added.end();
  std::vector<Index> result;
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

std::vector<Index> Inspected::numbers(std::string const& text, char const* argument, char const* part) const {
  auto const classes = run.data[part].classes;
  std::vector<Index> result;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    auto const token = parsed_number<Index>(word);
    if (!token || *token < 0 || *token >= classes)
      throw ConfigError(argument,
                        fmt::format("'{}' is not the number of a token, 0 … {} (the run's data have no text)", word, classes - 1));
    result.push_back(*token);
  }
  if (result.empty()) throw ConfigError(argument, "holds no tokens");
  return result;
}

void Inspected::check_length(char const* argument, std::size_t tokens) const {
  constexpr Index enough = 2048;
  if (auto const max_tokens = std::max(enough, run.model->context()); static_cast<Index>(tokens) > max_tokens)
    throw ConfigError(argument, fmt::format("is {} tokens long, but {} at most are inspected; give a part of it", tokens, max_tokens));
}

std::string attention_table(Tensor const& weights, std::vector<std::string> const& queries, std::vector<std::string> const& keys,
                            std::size_t width) {
  std::size_t head = 0, cell = 3;  // the width of "100"
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
      auto const query = cut(queries[i], head);
      line = "  " + query + blanks(query, head);
      for (auto j = first; j < last; ++j) line += " " + to_right(hundredths(weights.at(static_cast<Index>(i * keys.size() + j))), cell);
      page += line + "\n";
    }
    if (last < keys.size()) page += "\n";
  }
  return page;
}

Exit inspect(InspectOptions const& options, std::ostream& out) {
  if (!options.picture.empty()) expect_ending("--picture", options.picture, {".svg", ".pdf", ".png", ".html"});
  if (options.head && options.picture.empty()) throw ConfigError("--head", "needs --picture");
  if (options.heads && options.from) throw ConfigError("--heads", "--from replaces the heads' outputs, --heads leaves them out: give one");
  bool const of_heads = options.heads || options.from;
  if (of_heads && !options.save.empty()) throw ConfigError("--save", "saves attention weights, which --heads and --from do not show");
  auto const subject = inspected(options);
  if (of_heads) {
    head_effects(*subject, options, out);
    return Exit::done;
  }
  auto const attention = attention_of(*subject);
  if (subject->run.foreign && options.save.empty())
    throw ConfigError("--save",
                      fmt::format("is needed: {} is not a run's folder, so nothing is written there", subject->run.path.string()));
  fs::path const file = options.save.empty() ? subject->run.folder() / "attention.npz" : options.save;
  auto const save = [&] {
    try {
      write_npz(file, attention.arrays(true));
    } catch (Error const& error) {
      throw Error(fmt::format("{} (--save FILE.npz writes the weights elsewhere)", error.what()));
    }
  };
  auto const page = subject->page(options, attention);
  if (options.quiet) {
    save();
    return Exit::done;
  }

  if (auto const note = subject->run.weights_note(); !note.empty()) out << note << '\n';
  auto const shown = [&](std::string const& text) { return options.printable ? printable(text) : text; };
  bool const answers = predicts(*subject->run.model, "label") || predicts(*subject->run.model, "span");
  if (subject->asked) out << fmt::format("reference:        {}\n", shown(*subject->asked));
  if (subject->written) out << fmt::format("the model {} {}\n", answers ? "says:  " : "writes:", shown(*subject->written));
  out << page;
  if (page.empty()) write_tables(attention, options.width, out);
  out.flush();  // what cannot be saved has been shown
  save();
  out << fmt::format("{}saved in {}\n", page.empty() ? "\n" : "", file.string());
  if (!options.picture.empty()) out << fmt::format("drawn in {}\n", options.picture.string());
  return Exit::done;
}

}  // namespace heed
