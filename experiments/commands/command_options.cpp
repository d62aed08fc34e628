#include "experiments/commands/command_options.hpp"

#include <algorithm>
#include <sstream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/commands/list.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/config/scalar.hpp"
#include "experiments/data/tokenizers/byte_pair_training.hpp"

namespace heed {

namespace {

/// An option with a text, of which the last one given counts.
CLI::Option* add_text(CLI::App& app, std::string const& flag, std::string const& type, std::string const& help,
                      std::function<void(std::string const&)> take) {
  return app.add_option_function<std::string>(flag, std::move(take), help)
      ->type_name(type)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

/// An option with an integer or a real number in [least, greatest].
template <class Number, class Target>
CLI::Option* add_number(CLI::App& app, std::string const& flag, Target& target, double least, double greatest, std::string const& help) {
  return add_text(app, flag, "N", help, [=, &target](std::string const& text) {
    Number number{};
    Field const field{.name = flag, .target = &number, .least = least, .greatest = greatest};
    auto const value = Yaml::scalar(text);
    if (read_value(value, field, number) || !in_range(field))
      throw ConfigError(flag, fmt::format("wants {}, but found {}", wanted(field), found(value)));
    target = number;
  });
}

/// An option that takes one of some words.
void add_word(CLI::App& app, std::string const& flag, std::string& target, std::vector<std::string> words, std::string const& help) {
  add_text(app, flag, "NAME", help, [=, &target](std::string const& text) {
    if (std::ranges::find(words, text) == words.end())
      throw ConfigError(flag, fmt::format("wants one of {}, but found '{}'{}", fmt::join(words, ", "), text, did_you_mean(text, words)));
    target = text;
  });
}

void add_weights(CLI::App& app, std::string& target) {
  add_word(
      app, "--weights", target, {"average", "last", "best"},
      "best: of the best evaluation, the default where train.keep has them; average: the running one, else the default where train.ema "
      "keeps it");
}

}  // namespace

void add_everywhere(CLI::App& app, CommandLine& line) {
  auto const group = [](CLI::Option* option) { option->group("everywhere"); };
  app.set_help_flag();
  group(app.set_help_flag("-h,--help", "this page"));
  group(add_text(app, "--output", "DIR", "where runs are kept (default: runs)",
                 [&](std::string const& folder) { line.run.places.output = folder; }));
  group(add_text(app, "--data", "DIR", "where data are looked for (default: $HEED_DATA, then a cache folder)",
                 [&](std::string const& folder) {
                   std::error_code unreadable;
                   if (!std::filesystem::is_directory(folder, unreadable))
                     throw ConfigError("--data", fmt::format("there is no folder '{}'", folder));
                   line.run.places.data = folder;
                 }));
  group(add_number<std::int64_t>(app, "--threads", line.threads, 1, 1024,
                                 "threads to compute with (default: all cores; of an ablation's trials: 1)"));
  group(app.add_flag("--quiet", line.run.quiet, "no progress and no results on the terminal"));
}

namespace {

CLI::App& add_command(CLI::App& app, CommandLine& line, std::string const& name, std::string const& help) {
  auto& command = *app.add_subcommand(name, help);
  command.allow_extras();
  add_everywhere(command, line);
  return command;
}

void add_config(CLI::App& command, CommandLine& line) {
  command
      .add_option_function<std::string>(
          "CONFIG", [&](std::string const& file) { line.run.config = file; }, "a YAML file")
      ->required()
      ->type_name("");
  command.add_option("overrides", line.run.overrides, "replaces what the file says, e.g. train.steps=500")->type_name("key.path=value");
}

void add_workers(CLI::App& command, CommandLine& line) {
  add_text(command, "--jobs", "N", "trials of an ablation, or blocks of a study, at a time (default: cores / threads)",
           [&](std::string const& text) {
             auto const count = parse_integer(text);
             if (!count || *count < 1 || *count > 1024)
               throw ConfigError("--jobs", fmt::format("wants an integer ≥ 1 and ≤ 1024, but found '{}'", text));
             line.run.jobs.emplace(*count);
           });
}

void read_shard(std::string const& text, RunOptions& options) {
  auto const slash = text.find('/');
  auto const shard = parse_integer(text.substr(0, slash));
  std::optional<std::int64_t> shards;
  if (slash != text.npos) shards = parse_integer(text.substr(slash + 1));
  if (!shard || !shards || *shard < 1 || *shard > *shards)
    throw ConfigError("--shard", fmt::format("wants I/N with 1 ≤ I ≤ N, like 1/3, but found '{}'", text));
  options.shard = *shard;
  options.shards = *shards;
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
  add_text(command, "--format", "NAME", fmt::format("{}", fmt::join(export_formats(), ", ")),
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

void add_run(CLI::App& app, CommandLine& line) {
  auto& run = add_command(app, line, "run", "train what a file describes, or go on where it was cut off");
  add_config(run, line);
  run.add_flag("--fresh", line.run.fresh, "put an old run of this name aside and begin anew");
  run.add_flag("--resume")->description("go on from the last checkpoint (the default)")->excludes("--fresh");
  add_workers(run, line);
  add_text(run, "--shard", "I/N",
           "of an ablation, begin with the Ith of N parts of its trials (processes that run one file share them all, with or without it)",
           [&](std::string const& text) { read_shard(text, line.run); });
  run.footer(
      "The run is left in DIR/NAME: config.yaml, metrics.jsonl, metrics.csv, checkpoint.safetensors, summary.json.\n"
      "Ctrl-C finishes the step and saves; the same command goes on from there.\n\n"
      "examples:\n"
      "  heed run configs/gpt/grammar.yaml\n"
      "  heed run configs/gpt/shakespeare.yaml seed=2 name=shakespeare-2\n"
      "  heed run configs/gpt/grammar.yaml 'model.attention={score: scaled_dot, scale: inverse}' name=inverse");
}

void add_plan(CLI::App& app, CommandLine& line) {
  auto& plan =
      add_command(app, line, "plan",
                  "an ablation's arms, runs, expected time (from a few steps of each arm), and what its seeds can show; writes nothing");
  add_config(plan, line);
  add_workers(plan, line);
  plan.footer("example:\n  heed plan configs/ablations/attention.yaml seeds=8");
}

void add_check(CLI::App& app, CommandLine& line) {
  auto& check = add_command(app, line, "check", "validate a file and print it with everything it leaves to defaults; train nothing");
  add_config(check, line);
  check.footer("example:\n  heed check configs/gpt/grammar.yaml model.layers=6");
}

void add_report(CLI::App& app, CommandLine& line) {
  auto& report = add_command(app, line, "report", "write the report of finished ablations and runs again, from what is on disk");
  report
      .add_option_function<std::vector<std::string>>(
          "DIR", [&](std::vector<std::string> const& folders) { line.report.folders.assign(folders.begin(), folders.end()); },
          "folders or names of runs, studies and ablations, or a folder that holds them")
      ->required()
      ->type_name("");
  report.footer(
      "Each folder gets its report.html and figures/*.svg and *.pdf; several of them one report.html more, in the folder that holds them "
      "or the output folder.\n\n"
      "example:\n  heed report runs/attention runs/positions");
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

void add_bench(CLI::App& app, CommandLine& line) {
  auto& bench = add_command(app, line, "bench", "measure how long things take on this machine, and how much memory");
  std::vector<std::string> topics;
  for (auto const& topic : bench_topics()) topics.push_back(topic.name);
  bench.add_option("TOPIC", line.bench.what, fmt::format("{} (default: all)", fmt::join(topics, ", ")))->type_name("");
  bench
      .add_option("NAME", line.bench.names,
                  "only these. attention: a score, align, read or position; gpt: train, forward, sample; ops, scaling: names of lines; "
                  "training: CONFIG [key.path=value …], which it needs")
      ->type_name("");
  add_text(bench, "--size", "SIZE", "gpt: tiny, nano, small, gpt2 (default: the first three); attention: BxHxTxD (default: 12x4x256x64)",
           [&](std::string const& size) { line.bench.size = size; });
  bench.add_option("--precision", line.bench.precision, "of the factors of matrix products: float32 (default), bfloat16")
      ->type_name("TYPE");
  bench.add_flag("--recompute", line.bench.recompute, "gpt, training: run each block again for its gradient");
  bench.add_flag("--causal", line.bench.causal, "attention: a query sees the keys up to its own place");
  add_number<double>(bench, "--dropout", line.bench.dropout, 0, 0.99, "attention: the part of the weights that is dropped");
  add_number<double>(bench, "--seconds", line.bench.seconds, 0, 3600, "to repeat each measurement for (default: 0.5)");
  bench.add_flag("--json", line.bench.json, "one JSON object a line");
  bench.footer(
      "examples:\n"
      "  heed bench gpt --size nano --threads 1\n"
      "  heed bench gpt train --size small --threads 2 --precision bfloat16 --json\n"
      "  heed bench training configs/systems/reverse.yaml model.width=256\n"
      "  heed bench ops matmul gelu --threads 1\n"
      "  heed bench scaling tokens\n"
      "  heed bench attention --threads 1\n"
      "  heed bench attention local_m local_p --size 1x4x2048x64 --causal");
}

void add_compare(CLI::App& app, CommandLine& line) {
  auto& compare = add_command(app, line, "compare", "runs beside each other: the keys that differ, curves, final figures");
  compare.add_option("RUN", line.runs, "folders of runs and ablations, or their names in the output folder")
      ->required()
      ->expected(1, 1000)
      ->type_name("");
  compare.footer(
      "An ablation stands for its arms, each with its first seed.\n\n"
      "examples:\n  heed compare runs/shakespeare runs/shakespeare-2\n  heed compare runs/positions");
}

void add_clean(CLI::App& app, CommandLine& line) {
  auto& clean = add_command(app, line, "clean", "put the trials of earlier versions of an ablation's file aside");
  clean.add_option("ABLATION", line.runs, "ablations' folders, or their names in the output folder")
      ->required()
      ->expected(1, 1000)
      ->type_name("");
  clean.footer("They go into one folder beside the ablation's, NAME.old-1.\n\nexample:\n  heed clean runs/positions");
}

void add_schema(CLI::App& app, CommandLine& line) {
  add_command(app, line, "schema", "a JSON Schema of configuration files, for editors that complete and check YAML")
      .footer("example:\n  heed schema > heed.schema.json     # then, first in a file: # yaml-language-server: $schema=heed.schema.json");
}

void add_list(CLI::App& app, CommandLine& line) {
  auto& list = add_command(app, line, "list", "what there is: attention, positions, models, data, metrics, keys, …");
  list.add_option("TOPIC", line.topic, fmt::format("{}", fmt::join(list_topics(), ", ")))->type_name("");
  list.add_option("NAME", line.name, "all there is to say of one of them: gpt, additive, copy, …")->type_name("");
  list.add_flag("--markdown", line.markdown, "attention, ablation: the tables as the README files have them");
  list.footer("examples:\n  heed list attention\n  heed list models gpt\n  heed list keys | less");
}

}  // namespace

void add_commands(CLI::App& app, CommandLine& line) {
  add_run(app, line);
  add_plan(app, line);
  add_check(app, line);
  add_report(app, line);
  add_evaluate(app, line);
  add_sample(app, line);
  add_translate(app, line);
  add_export(app, line);
  add_inspect(app, line);
  add_tokenize(app, line);
  add_bench(app, line);
  add_compare(app, line);
  add_clean(app, line);
  add_schema(app, line);
  add_list(app, line);
}

}  // namespace heed
