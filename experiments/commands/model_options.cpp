// The options of commands that take a trained model or a text.

#include <sstream>

#include <fmt/ranges.h>

#include "experiments/commands/option_kinds.hpp"
#include "experiments/data/tokenizers/byte_pair_training.hpp"
#include "experiments/run/exchange/model_format.hpp"

namespace heed {

namespace {

void add_weights(CLI::App& app, std::string& target) {
  add_word(
      app, "--weights", target, {"average", "last", "best"},
      "best: of the best evaluation, the default where train.keep has them; average: the running one, else the default where train.ema "
      "keeps it");
}

void add_beam(CLI::App& command, BeamSettings& beam) {
  add_number<std::int64_t>(command, "--beam", beam.width, 1, 1000,
                           "hypotheses of beam search (default: 1, the most probable word each time)");
  add_number<double>(command, "--length-penalty", beam.length_penalty, 0, 100,
                     "of beam search: 0 for the most probable text; the more, the longer the texts it prefers (default: 0.6)");
}

void add_evaluate(CLI::App& app, CommandLine& line) {
  auto& options = line.evaluate;
  auto& evaluate = add_command(app, line, "evaluate", "metrics of a trained model on its held-out data, of all rows and by their length");
  evaluate
      .add_option_function<std::string>(
          "RUN", [&](std::string const& folder) { options.run = folder; }, "a run's folder or name, or its checkpoint")
      ->required()
      ->type_name("");
  add_word(evaluate, "--split", options.split, {"validation", "test"}, "the part of the data (default: validation)");
  add_beam(evaluate, options.search);
  add_text(evaluate, "--metrics", "NAME,…", "these alone, with commas between (default: all that apply; heed list metrics)",
           [&](std::string const& text) {
             options.metrics.emplace();
             std::istringstream names(text);
             for (std::string name; std::getline(names, name, ',');) options.metrics->push_back(name);
           });
  add_weights(evaluate, options.weights);
  add_number<std::int64_t>(evaluate, "--batch", options.batch, 1, 1e6, "rows at once (default: as the run's evaluations)");
  add_text(evaluate, "--save", "FILE", "a .csv or .json file for the results (default: evaluation-SPLIT in the run's folder)",
           [&](std::string const& file) { options.save = file; });
  add_text(evaluate, "--text", "FILE", "instead of held-out data: the loss of this text",
           [&](std::string const& file) { options.text = file; });
  add_text(evaluate, "--ids", "FILE", "the same of a text as numbers of tokens, little-endian int32",
           [&](std::string const& file) { options.ids = file; });
  add_number<std::int64_t>(evaluate, "--stride", options.stride, 1, 1 << 20,
                           "of --text: tokens between windows, of which each predicts its last so many (default: the context)");
  add_text(evaluate, "--dtype", "TYPE", "float32 or float64 to compute in (default: as in training)", [&](std::string const& text) {
    if (text != "float32" && text != "float64") throw ConfigError("--dtype", fmt::format("wants float32 or float64, but found '{}'", text));
    options.dtype = text == "float64" ? DType::float64 : DType::float32;
  });
  evaluate.footer(
      "The run's folder gets evaluation-SPLIT/results.csv and results.json, metrics_by_length.svg and .pdf and, of decoded targets, "
      "decoded.txt. Other options have folders of their own (evaluation-test-beam5); each is replaced as a whole.\n\n"
      "examples:\n"
      "  heed evaluate runs/grammar\n"
      "  heed evaluate runs/multi30k --split test --beam 5\n"
      "  heed evaluate gpt2 --text wiki.txt --stride 512            a Hugging Face folder");
}

void add_export(CLI::App& app, CommandLine& line) {
  auto& options = line.exported;
  auto& command = add_command(app, line, "export", "write a trained GPT for another program");
  command
      .add_option_function<std::string>(
          "RUN", [&](std::string const& folder) { options.run = folder; },
          "a run's folder or name, its checkpoint, or a Hugging Face folder")
      ->required()
      ->type_name("");
  command
      .add_option_function<std::string>(
          "DIR", [&](std::string const& folder) { options.folder = folder; }, "where it goes: a folder that is not there yet")
      ->required()
      ->type_name("");
  add_text(command, "--format", "NAME", fmt::format("{}", fmt::join(Registry<ModelFormat>::names(), ", ")),
           [&](std::string const& name) { options.format = name; });
  command.footer("example:\n  heed export runs/shakespeare --format huggingface shakespeare-gpt2");
}

void add_translate(CLI::App& app, CommandLine& line) {
  auto& options = line.translate;
  auto& translate = add_command(app, line, "translate", "lines in, lines out, by a model that reads a source");
  translate
      .add_option_function<std::string>(
          "RUN", [&](std::string const& folder) { options.run = folder; }, "a run's folder or name, or its checkpoint")
      ->required()
      ->type_name("");
  add_text(translate, "--input", "FILE", "what is translated (default: standard input)",
           [&](std::string const& file) { options.input = file; });
  add_text(translate, "--save", "FILE", "where the translations go (default: standard output)",
           [&](std::string const& file) { options.save = file; });
  add_weights(translate, options.weights);
  add_beam(translate, options.beam);
  add_number<std::int64_t>(translate, "--tokens", options.tokens, 1, 1e6,
                           "at most so many in a translation (default: 50 more than the source, as far as the model's context)");
  add_number<std::int64_t>(
      translate, "--nbest", options.best, 1, 1000,
      "hypotheses of each line that differ in their words, each behind the line's number and a tab (default: the best alone)");
  translate.add_flag("--scores", options.scores, "before each translation the logarithm of its probability, and a tab");
  add_text(translate, "--attention", "FILE",
           "where each word looked: a page (.html), or a picture of each line (.svg, .pdf, .png; FILE-3.svg of line 3)",
           [&](std::string const& file) { options.attention = file; });
  translate.footer(
      "The text's words stand between blanks, as in the data that the model was trained on; one that it does not know is <unk>. Lines "
      "stay\n"
      "in order, an empty one stays empty.\n\n"
      "examples:\n"
      "  heed translate multi30k --beam 5 < test.de > test.en\n"
      "  echo \"ein mann geht .\" | heed translate runs/multi30k --attention man.pdf");
}

void add_sample(CLI::App& app, CommandLine& line) {
  auto& sample = add_command(app, line, "sample", "write text with a trained model");
  auto& options = line.sample;
  sample
      .add_option_function<std::string>(
          "RUN", [&](std::string const& folder) { options.run = folder; }, "a run's folder or name, or its checkpoint")
      ->type_name("");
  sample
      .add_option("--prompt", options.prompts,
                  "text to continue; several: one after the other (default: a new line, or the start of a sentence)")
      ->type_name("TEXT …")
      ->expected(1, 1 << 20)
      ->allow_extra_args(false);
  constexpr double many = 1e9;
  add_number<std::int64_t>(sample, "--tokens", options.tokens, 0, many, "at most so many after the prompt (default: 500, or a sentence)");
  add_number<std::int64_t>(sample, "--count", options.count, 0, many, "samples of each prompt (default: 1, of sentences 10)");
  add_number<double>(sample, "--temperature", options.sampling.temperature, 0, 1e6,
                     "1: the model's own probabilities (default); below: surer; 0: the most probable token, always");
  add_number<std::int64_t>(sample, "--top-k", options.sampling.top_k, 1, many, "only the N most probable tokens");
  add_number<double>(sample, "--top-p", options.sampling.top_p, 1e-9, 1, "only the fewest tokens that have this share of the probability");
  add_number<std::int64_t>(sample, "--seed", options.seed, 0, 9e15, "the same seed writes the same text (default: 1)");
  add_weights(sample, options.weights);
  add_text(sample, "--precision", "TYPE",
           "of the factors of products: float32, or bfloat16, in half the time where weights are large (default: as in training)",
           [&](std::string const& text) {
             if (text != "float32" && text != "bfloat16")
               throw ConfigError("--precision", fmt::format("wants float32 or bfloat16, but found '{}'", text));
             options.precision = text;
           });
  sample.footer(
      "examples:\n"
      "  heed sample runs/shakespeare --prompt \"ROMEO:\" \"JULIET:\" --tokens 300 --temperature 0.8\n"
      "  heed sample grammar --prompt \"the dogs that\" --count 5");
}

void add_inspect(CLI::App& app, CommandLine& line) {
  auto& inspect = add_command(app, line, "inspect", "show what each head of a trained model attends to in a text");
  inspect
      .add_option_function<std::string>(
          "RUN", [&](std::string const& folder) { line.inspect.run = folder; }, "a run's folder or name, or its checkpoint")
      ->required()
      ->type_name("");
  auto const* const reads = add_text(inspect, "--text", "TEXT",
                                     "what the model reads; [MASK] is a masked model's own token (data without text: numbers of tokens)",
                                     [&](std::string const& text) { line.inspect.text = text; });
  auto const* const row =
      add_number<std::int64_t>(inspect, "--row", line.inspect.row, 1, 1e9, "of a model that sees pictures: which of the held-out ones");
  inspect.callback([reads, row] {
    if (reads->count() + row->count() == 0) throw CLI::RequiredError("--text or --row");
  });
  add_text(inspect, "--picture", "FILE", ".svg, .pdf or .png: the picture, and where each word of its caption looked",
           [&](std::string const& file) { line.inspect.picture = file; });
  add_text(
      inspect, "--target", "TEXT",
      "of a model that reads a source or sees a picture: what it has written (default: what it writes itself); of one that judges pairs or "
      "finds answers: the second text",
      [&](std::string const& text) { line.inspect.target = text; });
  add_weights(inspect, line.inspect.weights);
  add_beam(inspect, line.inspect.beam);
  add_text(inspect, "--save", "FILE", "where the weights go (default: attention.npz in the run's folder)",
           [&](std::string const& file) { line.inspect.save = file; });
  inspect.footer(
      "FILE holds tokens, labels and layer0.weights, layer1.weights, … [heads, queries, keys], for numpy.load; of a model that reads a\n"
      "source, source.tokens, inputs.tokens, … and for each layer what looks at what, layer0.of.\n\n"
      "examples:\n"
      "  heed inspect grammar --text \"the dogs that\"\n"
      "  heed inspect runs/shakespeare --text \"ROMEO:\" --save romeo.npz --quiet\n"
      "  heed inspect multi30k --text \"ein mann geht .\" --target \"a man walks .\"\n"
      "  heed inspect captions-soft --row 3 --picture where.png");
}

void add_tokenize(CLI::App& app, CommandLine& line) {
  auto& options = line.tokenize;
  auto& tokenize = add_command(app, line, "tokenize", "tokens of a text by byte pairs, or a vocabulary of them that is trained on it");
  tokenize
      .add_option_function<std::string>(
          "FILE", [&](std::string const& file) { options.file = file; },
          "a text, or a folder of texts, relative to the working folder, then to the data folder")
      ->required()
      ->type_name("");
  add_text(tokenize, "--vocabulary", "FOLDER", "one with vocab.json and merges.txt, or encoder.json and vocab.bpe; looked for likewise",
           [&](std::string const& folder) { options.vocabulary = folder; });
  add_text(tokenize, "--train", "N",
           "make a vocabulary of N tokens of the text, the 256 bytes and <|endoftext|> included, in the folder --output",
           [&](std::string const& text) {
             auto const tokens = parse_integer(text);
             if (!tokens || *tokens < least_byte_pairs || *tokens > 10'000'000)
               throw ConfigError("--train", fmt::format("wants an integer ≥ {} and ≤ 10000000, but found '{}'", least_byte_pairs, text));
             options.train.emplace(*tokens);
           });
  add_text(tokenize, "--ids", "OUT", "a file for the tokens' numbers, as little-endian int32",
           [&](std::string const& file) { options.ids = file; });
  tokenize.add_flag("--special", options.special, "<|endoftext|> and the like in the text are those tokens (default: text like any)");
  tokenize.get_option("--output")->description("with --train: the folder for vocab.json and merges.txt");
  tokenize.footer(
      "Words are what stands between blanks.\n\n"
      "examples:\n"
      "  heed tokenize shakespeare.txt --vocabulary gpt2-bpe --ids shakespeare.bin\n"
      "  heed tokenize wikitext-2/train.txt --train 8000 --output wikitext-8000");
}

}  // namespace

void add_model_commands(CLI::App& app, CommandLine& line) {
  add_evaluate(app, line);
  add_sample(app, line);
  add_translate(app, line);
  add_export(app, line);
  add_inspect(app, line);
  add_tokenize(app, line);
}

}  // namespace heed
