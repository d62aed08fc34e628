#include <algorithm>
#include <iostream>

#include <fmt/format.h>
#include <unistd.h>

#include "autograd/graph.hpp"
#include "experiments/commands/commands.hpp"
#include "experiments/data/tokenizer.hpp"
#include "experiments/program/command.hpp"
#include "nn/files/utf8.hpp"

namespace heed {

namespace {

/// Whether the bytes from i on are an incomplete UTF-8 character, whose remaining bytes may follow.
bool may_continue(std::string_view text, std::size_t i) {
  auto const byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  std::size_t const length = byte(i) < 0xC2 ? 1 : byte(i) < 0xE0 ? 2 : byte(i) < 0xF0 ? 3 : byte(i) < 0xF5 ? 4 : 1;
  if (i + length <= text.size()) return false;
  return std::all_of(text.begin() + static_cast<std::ptrdiff_t>(i) + 1, text.end(), [](char c) { return (c & 0xC0) == 0x80; });
}

/// Writes samples of a trained model, with its tokenizer.
class TextWriter {
 public:
  TextWriter(SampleOptions const& options, std::ostream& out)
      : options_(options), out_(out), run_(open_run(options)), tokenizer_(tokenizer()) {
    if (auto const note = run_.weights_note(); !note.empty()) fmt::print(stderr, "{}\n", note);
    if (options.precision) {
      run_.settings.train.precision = options.precision;
      if (auto const reason = run_.settings.contradiction()) throw ConfigError("--precision", *reason);
      set_products(run_.settings.products());
    }
    for (auto const& prompt : options.prompts) prompts_.push_back(encode(prompt));
    if (prompts_.empty()) prompts_.push_back(beginning());
  }

  void write_all() {
    auto const count = options_.count.value_or(sentences() ? 10 : 1);
    auto const total = count * static_cast<Index>(prompts_.size());
    for (std::size_t p = 0; p < prompts_.size(); ++p) {
      for (Index c = 0; c < count && out_; ++c) {
        if (total > 1 && !sentences()) out_ << fmt::format("--- {} of {} ---\n", static_cast<Index>(p) * count + c + 1, total);
        auto const stream = Stream(static_cast<std::uint64_t>(options_.seed), "sample").child(p).child(static_cast<std::uint64_t>(c));
        sentences() ? write_sentence(p, stream) : write_text(p, stream);
      }
    }
  }

 private:
  bool sentences() const { return tokenizer_->begin().has_value(); }

  std::shared_ptr<Tokenizer const> tokenizer() const {
    std::string const path = run_.path.string();
    if (!run_.model->decode({}, {}))
      throw ConfigError(path, fmt::format("its model, of kind {}, does not continue a text", run_.settings.model.kind));
    if (run_.tokenizer.empty()) throw ConfigError(path, "its data are tokens without a text, so there is none to sample");
    return tokenizer_of(run_);
  }

  std::vector<Index> encode(std::string const& prompt) const try {
    auto const tokens = tokenizer_->encode(prompt);
    return tokens.empty() ? beginning() : std::vector<Index>(tokens.begin(), tokens.end());
  } catch (Error const& error) {
    throw ConfigError("--prompt", error.what());
  }

  /// The prompt for a text from scratch: the begin token, else the end token, else a line break, else token 0.
  std::vector<Index> beginning() const {
    if (auto const first = tokenizer_->begin()) return {*first};
    if (auto const last = tokenizer_->end()) return {*last};
    try {
      auto const line_end = tokenizer_->encode("\n");
      return {line_end.begin(), line_end.end()};
    } catch (Error const&) {  // the vocabulary has no line break
      return {0};
    }
  }

  void continue_prompt(std::size_t p, Index count, Stream const& stream, std::function<bool(Index)> const& emit) const try {
    SamplingSettings sampling = options_.sampling;
    if (run_.foreign) sampling.tokens = tokenizer_->vocabulary();
    generate(*run_.model, prompts_[p], count, sampling, stream, emit);
  } catch (NonFinite const& error) {
    throw FileError(fmt::format("{}: {}: the weights are damaged, or the training went wrong", run_.path.string(), error.what()));
  }

  void write_text(std::size_t p, Stream const& stream) {
    Utf8Writer writer(options_.printable);
    bool fresh_line = true;
    auto const write = [&](std::string const& text) {
      if (!text.empty()) fresh_line = text.back() == '\n';
      out_ << text << std::flush;
      return static_cast<bool>(out_);
    };
    if (!options_.prompts.empty()) write(writer.push(options_.prompts[p]));
    continue_prompt(p, options_.tokens.value_or(500), stream,
                    [&](Index token) { return token != tokenizer_->end() && write(writer.push(tokenizer_->decode({token}))); });
    write(writer.finish());
    if (!fresh_line) write("\n");
  }

  void write_sentence(std::size_t p, Stream const& stream) {
    auto tokens = prompts_[p];
    bool ended = false;
    continue_prompt(p, options_.tokens.value_or(run_.model->context()), stream, [&](Index token) {
      ended = token == *tokenizer_->end();
      if (!ended) tokens.push_back(token);
      return !ended;
    });
    auto const sentence = tokenizer_->decode(tokens);
    out_ << (options_.printable ? printable(sentence) : sentence) << (ended ? "\n" : " …\n") << std::flush;
  }

  SampleOptions const& options_;
  std::ostream& out_;
  TrainedModel run_;
  std::shared_ptr<Tokenizer const> tokenizer_;
  std::vector<std::vector<Index>> prompts_;
};

void declare_sample(CLI::App& app, SampleOptions& options) {
  add_argument(app, "RUN", "a run's folder or name, or its checkpoint", options.run, Presence::optional);
  add_texts(app, "--prompt", "TEXT …", "one or several texts to continue (default: a new line, or the start of a sentence)",
            options.prompts);
  constexpr double many = 1e9;
  add_number<Index>(app, "--tokens", options.tokens, 0, many, "largest number of tokens after the prompt (default: 500, or a sentence)");
  add_number<Index>(app, "--count", options.count, 0, many, "samples per prompt (default: 1; for sentences 10)");
  add_number<double>(app, "--temperature", options.sampling.temperature, 0, 1e6,
                     "sampling temperature (default: 1); below 1: sharper; 0: greedy decoding");
  add_number<Index>(app, "--top-k", options.sampling.top_k, 1, many, "sample from the N most probable tokens");
  add_number<double>(app, "--top-p", options.sampling.top_p, 1e-9, 1,
                     "nucleus sampling: sample from the fewest tokens with this total probability");
  add_number<Index>(app, "--seed", options.seed, 0, 9e15, "random seed (default: 1)");
  add_weights(app, options.weights);
  add_text(app, "--precision", "TYPE", "type of the factors of matrix products: float32 or bfloat16 (default: as in training)",
           [&](std::string const& text) {
             if (text != "float32" && text != "bfloat16")
               throw ConfigError("--precision", fmt::format("wants float32 or bfloat16, but found '{}'", text));
             options.precision = text;
           });
}

/// Whether the text goes to a terminal; and RUN, which in `heed sample --prompt TEXT RUN` the parser takes for a prompt, moved to its
/// place. Throws ConfigError without RUN.
void complete_sample(SampleOptions& options, GlobalOptions const&) {
  options.printable = ::isatty(STDOUT_FILENO) != 0;
  for (std::string& prompt : options.prompts) prompt = unmarked(prompt);
  if (!options.run.empty()) return;
  if (options.prompts.size() < 2) throw ConfigError("sample", "RUN is required (see heed sample --help)");
  options.run = options.prompts.back();
  options.prompts.pop_back();
}

Declared<Command> const sample_command{
    {.order = 8,
     .name = "sample",
     .usage = "RUN [--prompt TEXT …]",
     .help = "sample text from a trained model",
     .footer = "examples:\n"
               "  heed sample runs/shakespeare --prompt \"ROMEO:\" \"JULIET:\" --tokens 300 --temperature 0.8\n"
               "  heed sample grammar --prompt \"the dogs that\" --count 5",
     .add = with_options<SampleOptions>(
         declare_sample, [](SampleOptions const& options) { return sample(options, std::cout); }, complete_sample)}};

}  // namespace

std::string Utf8Writer::take(bool all) {
  std::string text;
  std::size_t i = 0;
  while (i < waiting_.size() && (all || !may_continue(waiting_, i))) {
    auto const start = i;
    auto const character = decode_utf8(waiting_, i);
    auto const bytes = std::string_view(waiting_).substr(start, i - start);
    text += !character ? "\uFFFD" : printable_ ? printable(bytes) : std::string(bytes);
  }
  waiting_.erase(0, i);
  return text;
}

Exit sample(SampleOptions const& options, std::ostream& out) {
  TextWriter(options, out).write_all();
  return Exit::done;
}

}  // namespace heed
