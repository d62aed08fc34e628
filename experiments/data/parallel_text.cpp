#include <algorithm>
#include <numeric>
#include <span>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "experiments/data/files.hpp"
#include "experiments/data/parallel.hpp"
#include "experiments/data/tokenizers/tokenizers.hpp"
#include "nn/files/sha256.hpp"
#include "nn/files/utf8.hpp"

namespace heed {
namespace {

[[noreturn]] void refuse_sentence(std::string const& path, std::size_t line, std::string const& message) {
  throw FileError(fmt::format("{}:{}: {}", path, line + 1, message));
}

void check_line(std::string const& path, std::size_t number, std::string_view line) {
  for (std::size_t i = 0; i < line.size();) {
    auto const start = i;
    if (!decode_utf8(line, i)) refuse_sentence(path, number, fmt::format("not UTF-8 at byte {} of the line", start));
  }
  auto const words = words_of(line);
  if (words.empty()) refuse_sentence(path, number, "the line is empty; every line needs a sentence, leave it out of both files");
  for (auto const word : words)
    if (is_mark(word) && word != "<unk>")
      refuse_sentence(path, number, fmt::format("{} is a special token of the vocabulary, not a word", word));
}

ParallelText::Side read_side(std::filesystem::path const& path) {
  auto const content = read_text(path);
  ParallelText::Side side{path.string(), sha256(std::as_bytes(std::span(content))), {}};
  auto const text = without_byte_order_mark(content);
  for (std::size_t begin = 0; begin < text.size();) {
    auto const end = std::min(text.find('\n', begin), text.size());
    side.lines.emplace_back(text.substr(begin, end - begin));
    if (side.lines.back().ends_with('\r')) side.lines.back().pop_back();
    check_line(side.path, side.lines.size() - 1, side.lines.back());
    begin = end + 1;
  }
  return side;
}

}  // namespace

ParallelText ParallelText::read(std::filesystem::path const& source, std::filesystem::path const& target) {
  ParallelText text{read_side(source), read_side(target), {}};
  auto const &a = text.source, &b = text.target;
  text.numbers.resize(a.lines.size());
  std::iota(text.numbers.begin(), text.numbers.end(), std::size_t{0});
  if (a.lines.size() == b.lines.size()) return text;
  auto const& [more, fewer] = a.lines.size() > b.lines.size() ? std::tie(a, b) : std::tie(b, a);
  refuse_sentence(
      more.path, fewer.lines.size(),
      fmt::format("no translation: {} ends after {} lines, but this file has {}", fewer.path, fewer.lines.size(), more.lines.size()));
}

ParallelText ParallelText::up_to(Index longest) const {
  ParallelText kept{{source.path, source.sha256, {}}, {target.path, target.sha256, {}}, {}};
  auto const fits = [&](std::string const& line) { return std::ssize(words_of(line)) <= longest; };
  for (std::size_t pair = 0; pair < numbers.size(); ++pair) {
    if (!fits(source.lines[pair]) || !fits(target.lines[pair])) continue;
    kept.source.lines.push_back(source.lines[pair]);
    kept.target.lines.push_back(target.lines[pair]);
    kept.numbers.push_back(numbers[pair]);
  }
  if (kept.numbers.empty())
    throw FileError(fmt::format("{}: of its {} pairs none has at most {} words on either side, which data.longest asks for", source.path,
                                numbers.size(), longest));
  return kept;
}

void ParallelText::refuse(Side const& side, std::size_t pair, std::string const& message) const {
  refuse_sentence(side.path, numbers[pair], message);
}

}  // namespace heed
