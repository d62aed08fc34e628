#include "experiments/commands/translate.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <streambuf>
#include <string>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "autograd/error.hpp"
#include "experiments/commands/translator.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/data/tokenizers/tokenizers.hpp"
#include "experiments/metric/probe/attention_maps.hpp"
#include "experiments/program/command.hpp"
#include "experiments/report/alignment_figure.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/input_file.hpp"
#include "nn/files/utf8.hpp"

namespace heed {

namespace {

constexpr std::size_t lines_at_once = 1024;
constexpr std::size_t max_bytes_of_line = 1 << 24;
constexpr std::size_t max_pictures = 200;

/// An input line with at least one word.
struct SourceLine {
  std::size_t line;  ///< number of the line, from 1
  std::vector<std::int32_t> tokens;
};

class Filter {
 public:
  Filter(TranslateOptions const& options, std::streambuf& in, std::ostream& out)
      : options_(options), in_(in), out_(out), run_(open_run(options)), translator_(run_) {
    if (auto const note = run_.weights_note(); !note.empty()) fmt::print(stderr, "{}\n", note);
  }

  void translate_all() {
    while (auto const count = read_lines()) {
      write(count);
      if (!out_) return;
    }
    if (!options_.attention.empty()) write_alignments(options_.attention, alignments_);
  }

 private:
  std::string location(std::size_t line) const {
    return fmt::format("{}:{}", options_.input.empty() ? "standard input" : options_.input.string(), line);
  }

  /// Reads the next lines, only one from a terminal. Returns their number, 0 at the end.
  std::size_t read_lines() {
    sources_.clear();
    std::size_t count = 0;
    while (count < (options_.at_once ? 1 : lines_at_once)) {
      auto const number = read_ + count + 1;
      try {
        auto const whole = next();
        if (!whole) break;
        ++count;
        auto const line = number == 1 ? without_byte_order_mark(*whole) : std::string_view(*whole);
        for (std::size_t i = 0; i < line.size();)
          if (auto const at = i; !decode_utf8(line, i)) throw Error(fmt::format("not UTF-8 at byte {} of the line", at));
        if (!words_of(line).empty()) sources_.push_back({number, translator_.read(line)});
      } catch (Error const& error) {
        throw FileError(fmt::format("{}: {}", location(number), error.what()));
      }
    }
    return count;
  }

  /// The next line without its end; nothing after the last line. Of one that is too long the rest is not read.
  std::optional<std::string> next() const {
    using Traits = std::streambuf::traits_type;
    std::string line;
    auto read = in_.sbumpc();
    if (Traits::eq_int_type(read, Traits::eof())) return std::nullopt;
    for (; !Traits::eq_int_type(read, Traits::eof()) && Traits::to_char_type(read) != '\n'; read = in_.sbumpc()) {
      if (line.size() == max_bytes_of_line) throw Error(fmt::format("the line has more than {} bytes", max_bytes_of_line));
      line += Traits::to_char_type(read);
    }
    return line;
  }

  void write(std::size_t count) {
    auto const targets = translated(mapped(sources_, &SourceLine::tokens));
    auto next = sources_.begin();
    for (auto line = read_ + 1; line <= read_ + count; ++line) {
      if (next == sources_.end() || next->line != line) {
        if (options_.best == 1) out_ << '\n';
        continue;
      }
      auto const& hypotheses = heed::at(targets, next - sources_.begin());
      write(line, hypotheses);
      if (!options_.attention.empty()) note_alignment(*next, hypotheses.front());
      ++next;
    }
    out_.flush();
    read_ += count;
  }

  void write(std::size_t line, std::vector<Decoded> const& hypotheses) {
    std::set<std::string> written;
    for (auto const& hypothesis : hypotheses) {
      if (std::ssize(written) == options_.best) break;
      auto const text = translator_.text(hypothesis.tokens);
      if (!written.insert(text).second) continue;  // it differs only in special tokens, which are not written
      if (options_.best > 1) out_ << line << '\t';
      if (options_.scores) out_ << fmt::format("{:.4f}\t", hypothesis.score);
      out_ << (options_.printable ? printable(text) : text) << '\n';
    }
  }

  std::vector<std::vector<Decoded>> translated(std::vector<std::vector<std::int32_t>> const& tokens) const try {
    return translator_.translate(tokens, options_.beam, options_.tokens, read_);
  } catch (FileError const&) {
    throw;
  } catch (Error const& error) {  // e.g. a source with more positions than attention has learned
    auto const longest = std::ranges::max_element(sources_, {}, [](SourceLine const& source) { return source.tokens.size(); });
    throw FileError(fmt::format("{}: {}", location(longest->line), error.what()));
  }

  void note_alignment(SourceLine const& source, Decoded const& target) {
    if (alignments_.size() == max_pictures)
      throw ConfigError("--attention", fmt::format("draws {} sentences at most, and line {} is one more", max_pictures, source.line));
    auto const attention = record_attention_maps(*run_.model, translator_.batch(source.tokens, target.tokens),
                                                 {translator_.target_words(), translator_.source_words()});
    auto alignment = alignment_of(attention);
    if (alignment.layers.empty())
      throw ConfigError("--attention", fmt::format("no attention of {} attends to the source", run_.path.string()));
    alignment.line = source.line;
    alignments_.push_back(std::move(alignment));
  }

  TranslateOptions const& options_;
  std::streambuf& in_;
  std::ostream& out_;
  TrainedModel run_;
  Translator translator_;
  std::vector<SourceLine> sources_;  ///< of the last lines that were read; empty lines are left out
  std::size_t read_ = 0;             ///< number of lines before these
  std::vector<Alignment> alignments_;
};

/// Reads standard input, or a file. A failed read, which std::filebuf may take for the end of the file, throws Error with the reason.
class DescriptorBuffer : public std::streambuf {
 public:
  DescriptorBuffer() = default;
  /// Throws FileError if the path is no readable file. Opening a named pipe waits for its writer.
  explicit DescriptorBuffer(fs::path const& path) : descriptor_(is_folder(path) ? -1 : ::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor_ < 0)
      throw FileError(fmt::format("{}: {}", path.string(), is_there(path) ? "is no file that can be read" : "there is no such file"));
  }
  ~DescriptorBuffer() override {
    if (descriptor_ != STDIN_FILENO) ::close(descriptor_);
  }

 protected:
  int_type underflow() override {
    ssize_t count = -1;
    do count = ::read(descriptor_, bytes_.data(), bytes_.size());
    while (count < 0 && errno == EINTR);
    if (count < 0) throw Error(fmt::format("cannot be read: {}", std::strerror(errno)));
    setg(bytes_.data(), bytes_.data(), bytes_.data() + count);
    return count == 0 ? traits_type::eof() : traits_type::to_int_type(bytes_.front());
  }

 private:
  int descriptor_ = STDIN_FILENO;
  std::array<char, 65536> bytes_;
};

void declare_translate(CLI::App& app, TranslateOptions& options) {
  add_argument(app, "RUN", "a run's folder or name, or its checkpoint", options.run);
  add_text(app, "--input", "FILE", "input file (default: standard input)", options.input);
  add_text(app, "--save", "FILE", "output file (default: standard output)", options.save);
  add_weights(app, options.weights);
  add_beam(app, options.beam);
  add_number<Index>(app, "--tokens", options.tokens, 1, 1e6,
                    "largest number of tokens of a translation (default: 50 more than the source, at most the model's context)");
  add_number<Index>(app, "--nbest", options.best, 1, 1000,
                    "number of different hypotheses per line, each after the line's number and a tab (default: only the best)");
  add_flag(app, "--scores", options.scores, "write the log-likelihood and a tab before each translation");
  add_text(app, "--attention", "FILE",
           "draw the attention maps: one page (.html), or a picture of each line (.svg, .pdf, .png; FILE-3.svg for line 3)",
           options.attention);
}

Exit translate_at_terminal(TranslateOptions const& given) {
  TranslateOptions options = given;
  options.printable = options.save.empty() && ::isatty(STDOUT_FILENO) != 0;
  options.at_once = options.input.empty() && ::isatty(STDIN_FILENO) != 0;
  DescriptorBuffer standard_input;
  std::istream in(&standard_input);
  return translate(options, in, std::cout);
}

Declared<Command> const translate_command{
    {.order = 9,
     .name = "translate",
     .usage = "RUN",
     .help = "translate each line with a sequence-to-sequence model",
     .footer = "Words are separated by blanks, as in the training data; unknown ones are <unk>. Lines stay in order, an empty one stays "
               "empty.\n\nexamples:\n  heed translate multi30k --beam 5 < test.de > test.en\n  echo \"ein mann geht .\" | heed translate "
               "runs/multi30k --attention man.pdf",
     .add = with_options<TranslateOptions>(declare_translate, translate_at_terminal)}};

}  // namespace

Exit translate(TranslateOptions const& options, std::istream& in, std::ostream& out) {
  auto const file = options.input.empty() ? nullptr : std::make_unique<DescriptorBuffer>(options.input);
  std::streambuf& from = file ? *file : *in.rdbuf();
  if (options.best > options.beam.width)
    throw ConfigError("--nbest", fmt::format("{} hypotheses of a line need --beam {} or more", options.best, options.best));
  if (!options.attention.empty()) expect_ending("--attention", options.attention, {".html", ".svg", ".pdf", ".png"});
  if (options.save.empty()) {
    Filter(options, from, out).translate_all();
    return Exit::done;
  }
  AtomicFile saved(options.save);
  std::ostringstream text;
  Filter(options, from, text).translate_all();
  saved.write(text.str());
  saved.commit();
  return Exit::done;
}

}  // namespace heed
