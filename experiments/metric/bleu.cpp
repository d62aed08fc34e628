#include "experiments/metric/bleu.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <regex>
#include <utility>

#include <fmt/format.h>
#include <utf8proc.h>

#include "autograd/error.hpp"
#include "experiments/config/table.hpp"
#include "experiments/data/tokenizer.hpp"
#include "experiments/metric/evaluated_batch.hpp"
#include "nn/files/utf8.hpp"

namespace heed {
namespace {

/// The rules of mteval-v13a.pl, as sacrebleu has them. Bytes beyond ASCII are letters to all of them.
std::string spaced_13a(std::string text) {
  for (auto const& [from, to] : {std::pair("<skipped>", ""), std::pair("-\n", ""), std::pair("\n", " "), std::pair("&quot;", "\""),
                                 std::pair("&amp;", "&"), std::pair("&lt;", "<"), std::pair("&gt;", ">")})
    replace_all(text, from, to);
  static std::pair<std::regex, char const*> const rules[] = {
      {std::regex(R"([!-&(-+/:-@\[-`{-~])"), " $& "},  // all ASCII punctuation but ' - . ,
      {std::regex("([^0-9])([.,])"), "$1 $2 "},        // points and commas, unless a digit is before or behind them
      {std::regex("([.,])([^0-9])"), " $1 $2"},
      {std::regex("([0-9])-"), "$1 - "}};
  text = " " + text + " ";
  for (auto const& [rule, replacement] : rules) text = std::regex_replace(text, rule, replacement);
  return text;
}

/// Whether Python's str.split() splits at this character.
bool is_blank(char32_t c) { return is_white_space(c) || (c >= 0x1C && c <= 0x1F); }

/// Calls f(bytes, code point) for each character; of a byte that is not UTF-8 there is none, as U+FFFD.
template <class F>
void each_character(std::string_view text, F f) {
  for (std::size_t i = 0; i < text.size();) {
    auto const start = i;
    auto const character = decode_utf8(text, i);
    f(text.substr(start, i - start), character.value_or(0xFFFD));
  }
}

/// In small letters, but for İ, which has two. A byte that is not UTF-8 stays.
std::string lower(std::string_view text) {
  std::string result;
  each_character(text, [&](std::string_view bytes, char32_t c) {
    auto const other = c == 0x130 ? c : static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
    result += other == c ? std::string(bytes) : to_utf8(other);
  });
  return result;
}

using NGrams = std::map<std::vector<std::string_view>, Index>;

NGrams n_grams(std::vector<std::string> const& words, std::size_t n) {
  NGrams counts;
  for (std::size_t i = 0; i + n <= words.size(); ++i)
    ++counts[{words.begin() + static_cast<std::ptrdiff_t>(i), words.begin() + static_cast<std::ptrdiff_t>(i + n)}];
  return counts;
}

}  // namespace

BleuCounts& BleuCounts::operator+=(BleuCounts const& other) {
  for (std::size_t n = 0; n < orders; ++n) {
    matches[n] += other.matches[n];
    totals[n] += other.totals[n];
  }
  hypothesis += other.hypothesis;
  reference += other.reference;
  return *this;
}

std::vector<std::string> bleu_words(std::string_view sentence, BleuSettings const& settings) {
  auto text = settings.lowercase ? lower(sentence) : std::string(sentence);
  text.erase(text.find_last_not_of(" \t\n\v\f\r") + 1);  // so that a dash at the end is not before a line end
  if (settings.tokens == BleuSettings::Tokens::v13a) text = spaced_13a(std::move(text));
  std::vector<std::string> words(1);
  each_character(text, [&](std::string_view bytes, char32_t c) {
    if (!is_blank(c))
      words.back() += bytes;
    else if (!words.back().empty())
      words.emplace_back();
  });
  if (words.back().empty()) words.pop_back();
  return words;
}

BleuCounts bleu_counts(std::string_view hypothesis, std::vector<std::string> const& references, BleuSettings const& settings) {
  if (references.empty()) throw Error("BLEU: a hypothesis has no reference");
  auto const words = bleu_words(hypothesis, settings);
  auto const wanted = mapped(references, [&](std::string const& reference) { return bleu_words(reference, settings); });

  BleuCounts counts;
  auto const size = std::ssize(words);
  auto const nearest = std::ranges::min_element(
      wanted, {}, [&](auto const& reference) { return std::pair(std::abs(std::ssize(reference) - size), std::ssize(reference)); });
  counts.hypothesis = size;
  counts.reference = std::ssize(*nearest);
  for (std::size_t n = 1; n <= BleuCounts::orders; ++n) {
    NGrams allowed;
    for (auto const& reference : wanted)
      for (auto const& [n_gram, count] : n_grams(reference, n)) allowed[n_gram] = std::max(allowed[n_gram], count);
    for (auto const& [n_gram, count] : n_grams(words, n)) {
      counts.totals[n - 1] += count;
      if (auto const found = allowed.find(n_gram); found != allowed.end()) counts.matches[n - 1] += std::min(count, found->second);
    }
  }
  return counts;
}

double bleu(BleuCounts const& counts, BleuSettings const& settings) {
  if (std::ranges::all_of(counts.matches, [](auto count) { return count == 0; })) return 0;
  double sum = 0, smoothed = 1;
  std::size_t orders = 0;
  for (; orders < BleuCounts::orders && counts.totals[orders] > 0; ++orders) {
    auto matches = static_cast<double>(counts.matches[orders]);
    if (matches == 0 && settings.smoothing == BleuSettings::Smoothing::exponential) matches = smoothed /= 2;
    if (matches == 0 && settings.smoothing == BleuSettings::Smoothing::floor) matches = settings.floor;
    sum += std::log(matches / static_cast<double>(counts.totals[orders]));  // −∞ for 0
  }
  if (orders < BleuCounts::orders && !settings.effective_order) return 0;
  auto const ratio = static_cast<double>(counts.reference) / static_cast<double>(counts.hypothesis);
  return 100 * std::exp(std::min(0.0, 1 - ratio) + sum / static_cast<double>(orders));
}

double corpus_bleu(std::vector<std::string> const& hypotheses, std::vector<std::string> const& references, BleuSettings const& settings) {
  if (hypotheses.size() != references.size())
    throw Error(fmt::format("BLEU: {} hypotheses, but {} references", hypotheses.size(), references.size()));
  BleuCounts counts;
  for (std::size_t i = 0; i < hypotheses.size(); ++i) counts += bleu_counts(hypotheses[i], {references[i]}, settings);
  return bleu(counts, settings);
}

// ---------------------------------------------------------------- metrics of decoded targets

namespace {

/// Counts of decoded targets against the held-out text as written in the data: words missing in the vocabulary count as errors.
void add_text(EvaluatedBatch const& batch, BleuSettings const& settings, std::optional<BleuCounts>& counts) {
  auto const& decoded = batch.decoded();
  for (std::size_t row = 0; row < decoded.size(); ++row) {
    auto const reference = batch.data().original(batch.rows().numbers[row]).reference;
    if (!reference) throw Error("BLEU: a held-out sequence has no reference text");
    if (!counts) counts.emplace();
    *counts += bleu_counts(batch.data().facts().tokenizer->decode(decoded[row].tokens), {*reference}, settings);
  }
}

void add_right(EvaluatedBatch const& batch, MeanCounts& right) {
  auto const& decoded = batch.decoded();
  for (std::size_t row = 0; row < decoded.size(); ++row) {
    right.sum += decoded[row].ended && decoded[row].tokens == target_of(batch.batch(), static_cast<Index>(row)) ? 1 : 0;
    right.count += 1;
  }
}

std::optional<std::string> no_text(Dataset const& data, Model const& model) {
  if (auto const unavailable = no_decoding(data, model)) return unavailable;
  return unless(data.original(0).reference.has_value(), "the data have no text of their targets");
}

MetricKind kind(std::string const& name, BleuSettings const& settings, std::string const& help) {
  using Counts = std::optional<BleuCounts>;  // nothing: of no sequence
  auto const add = [settings](EvaluatedBatch const& batch, Counts& counts) { add_text(batch, settings, counts); };
  auto const value = [settings](Counts const& counts) { return counts ? bleu(*counts, settings) : std::nan(""); };
  auto const make = [=](Dataset const&) { return std::make_unique<CountedMetric<Counts>>(name, add, value); };
  return {.info = {name, "", Better::higher, help, {.min = 0, .max = 100}}, .unavailable = no_text, .make = make};
}

Declared<MetricKind> const bleu_metric{
    kind("bleu", {.tokens = BleuSettings::Tokens::words},
         "BLEU of the decoded targets, 0 to 100, on the data's own tokens, case-sensitive (sacrebleu's tok:none)")};
Declared<MetricKind> const bleu_13a_metric{kind("bleu.13a", {}, "the same after mteval-v13a's tokenisation, sacrebleu's default")};

Declared<MetricKind> const decoded_metric{
    {.info = {"decoded.exact", "", Better::higher, "share of sources whose decoded target is entirely right", fraction},
     .unavailable = no_decoding,
     .make = [](Dataset const&) { return std::make_unique<MeanMetric>("decoded.exact", add_right, &MeanCounts::mean); }}};

}  // namespace

}  // namespace heed
