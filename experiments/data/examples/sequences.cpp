#include <algorithm>
#include <array>
#include <set>
#include <span>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "experiments/data/examples/dataset.hpp"
#include "experiments/data/view.hpp"

namespace heed {
namespace {

using Piece = std::span<Index const>;

/// A sequence assembled from special tokens and pieces of an example.
struct Sequence {
  std::vector<Index> tokens;
  std::vector<Index> segments;  ///< per token: the number of its text
  std::vector<Index> passage;   ///< per token: 1 in the passage; 2 at the position that stands for "no answer"; else 0
  std::vector<Index> targets;   ///< per token: the next one, where it is asked for; else −1
  Index begin = -1;             ///< position of the first kept token of the passage
  Index skipped = 0;            ///< tokens of the passage before it

  void add(Index token, Index segment = 0, Index part = 0) {
    tokens.push_back(token);
    segments.push_back(segment);
    passage.push_back(part);
  }
  void add(Piece piece, Index segment, Index part = 0) {
    for (Index const token : piece) add(token, segment, part);
  }
  void add_passage(Piece piece) {
    begin = std::ssize(tokens);
    add(piece, 1, 1);
  }
  /// Asks for the next token, everywhere or in one segment alone.
  void ask_next(std::optional<Index> in = {}) {
    for (std::size_t i = 1; i < tokens.size(); ++i) targets.push_back(segments[i] == in.value_or(segments[i]) ? tokens[i] : -1);
    targets.push_back(-1);
  }
};

/// The texts of an example for one sequence, truncated to fit.
struct ExamplePieces {
  Piece first, second, option;
};

/// A kind of sequence.
struct SequenceForm {
  std::string name;
  std::vector<std::string> marks;  ///< names of the special tokens, which are appended to the vocabulary in this order
  Index (*special)(Index texts);   ///< the number of special tokens in a sequence of this many texts
  /// `mark`: the first special token; `exact_match`: data.exact_match is set.
  Sequence (*put_together)(ExamplePieces const& pieces, Index mark, bool exact_match);
  bool predicts = true;          ///< has targets; else segments
  bool cuts_beginnings = false;  ///< long texts are truncated at the beginning instead of the end
  bool both_orders = false;      ///< a symmetric pair is shown in both orders
};

/// First and last token of an answer in a passage; −1: there is none.
struct AnswerSpan {
  Index begin = -1, end = -1;
};

/// [R, T] from one list per sequence, padded with `filler`; [B, K, T] if the B rows have K > 1 sequences each.
Tensor rows_of(std::vector<Sequence> const& sequences, std::vector<Index> Sequence::*list, Index filler, Index rows) {
  Tensor const all = padded(mapped(sequences, list), to_double(filler));
  auto const count = std::ssize(sequences);
  return count > rows ? all.viewed({rows, count / rows, all.size(1)}) : all;
}

/// A row's tokens of a part, without what stands behind their end; `of`: of a part [B, K, T], the one of the K.
Piece piece_of(Batch const& batch, char const* part, Index row, Index of = 0) {
  if (!batch.has(part)) return {};
  Tensor const& all = batch[part];
  Index const places = all.size(-1), number = all.rank() == 3 ? row * all.size(1) + of : row;
  auto const whole = all.data<std::int64_t>().subspan(static_cast<std::size_t>(number * places), static_cast<std::size_t>(places));
  return whole.first(static_cast<std::size_t>(std::ranges::find(whole, -1) - whole.begin()));
}

/// Cuts the longest of the pieces at its end, of equals the first in the list, until all have room, as BERT's authors do; throws Error
/// where there is no room for a token of each.
void cut_to_room(std::array<Piece*, 3> const& pieces, Index room) {
  auto const size = [](Piece const* piece) { return std::ssize(*piece); };
  while (size(pieces[0]) + size(pieces[1]) + size(pieces[2]) > room) {
    Piece* const longest = *std::ranges::max_element(pieces, {}, size);
    if (longest->size() <= 1) throw Error(fmt::format("model.context: leaves room for {} tokens of an example", room));
    *longest = longest->first(longest->size() - 1);
  }
}

/// The part "answer" of a row; none where the part is not there.
AnswerSpan answer_of(Batch const& plain, Index row) {
  if (!plain.has("answer")) return {};
  auto const ends = plain["answer"].data<std::int64_t>().subspan(static_cast<std::size_t>(2 * row), 2);
  return {ends[0], ends[1]};
}

/// The places of an answer in a sequence, of none that of "no answer"; −1 of one that was cut off. `clipped`: what is left of one counts.
AnswerSpan placed(AnswerSpan const& answer, Sequence const& sequence, bool clipped) {
  Index const none = std::ranges::find(sequence.passage, 2) - sequence.passage.begin();
  if (answer.begin < 0) return {none, none};
  Index const kept = std::ranges::count(sequence.passage, 1), begin = answer.begin - sequence.skipped;
  if (begin >= kept || (!clipped && answer.end - sequence.skipped >= kept)) return {};
  return {sequence.begin + begin, sequence.begin + std::min(answer.end - sequence.skipped, kept - 1)};
}

/// A view of labelled examples: each is one sequence, or several (options, orders), of special tokens and its texts.
class SequenceView : public View {
 public:
  SequenceView(std::unique_ptr<Dataset> data, SequenceForm form) : View(std::move(data)), form_(std::move(form)) {
    Index longest = 1;
    for (auto const* const sizes : {&facts_.training_sizes, &facts_.held_out_sizes})
      for (auto const& [tokens, texts] : *sizes) longest = std::max(longest, tokens + form_.special(texts));
    Signature& parts = facts_.signature;
    if (parts.has("answer")) {
      parts.set({.name = "passage", .classes = 3, .vocabulary = "parts", .longest = longest, .made_by = form_.name});
      parts.set({.name = "span", .classes = longest, .vocabulary = "places", .made_by = form_.name});
    }
    for (char const* const piece : {"first", "second", "options", "answer", "symmetric", "exact_match"}) parts.remove(piece);
    PartSpec beside{.name = "inputs",
                    .classes = first_mark() + std::ssize(form_.marks),
                    .longest = longest,
                    .added = form_.marks,
                    .made_by = form_.name,
                    .sequences = sequences_of_row()};
    parts.set(beside);
    beside.name = form_.predicts ? "targets" : "segments";
    if (!form_.predicts) beside.classes = exact_match() ? 3 : 2, beside.vocabulary = "texts", beside.added = {};
    parts.set(beside);
    facts_.cut_short = [this](Index context) { return cut_short(context); };
  }

 private:
  Signature const& given() const { return plain().signature(); }
  Index first_mark() const { return given()["first"].classes; }
  bool exact_match() const { return given().has("exact_match"); }
  Index sequences_of_row() const {
    if (given().has("options")) return given()["options"].sequences;
    return form_.both_orders && given().has("symmetric") && given().has("second") ? 2 : 1;
  }

  Sequence sequence_of(Batch const& plain, Index row, Index number, Index context, AnswerSpan const& kept) const {
    Piece first = piece_of(plain, "first", row), second = piece_of(plain, "second", row), option = piece_of(plain, "options", row, number);
    Piece const whole_first = first, whole_second = second;
    Index const texts = 1 + (second.empty() ? 0 : 1) + (option.empty() ? 0 : 1);
    cut_to_room({&second, &option, &first}, context - form_.special(texts));
    if (form_.cuts_beginnings) first = whole_first.last(first.size()), second = whole_second.last(second.size());
    Index skipped = 0;
    if (kept.end >= std::ssize(second)) {  // a window with the answer in its middle
      Index const before = std::max<Index>(0, (std::ssize(second) - (kept.end + 1 - kept.begin)) / 2);
      skipped = std::clamp<Index>(kept.begin - before, 0, std::ssize(whole_second) - std::ssize(second));
      second = whole_second.subspan(static_cast<std::size_t>(skipped), second.size());
    }
    ExamplePieces pieces{first, second, option};
    if (number == 1 && !plain.has("options")) std::swap(pieces.first, pieces.second);  // the other order
    Sequence made = form_.put_together(pieces, first_mark(), exact_match());
    made.skipped = skipped;
    return made;
  }

  Batch shown(Batch plain, ShownRows const& of) const override {
    Index const per_row = sequences_of_row(), rows = plain["first"].size(0);
    std::vector<Sequence> sequences;
    std::vector<Index> lengths, spans;
    for (Index row = 0; row < rows; ++row) {
      AnswerSpan const answer = answer_of(plain, row);
      for (Index k = 0; k < per_row; ++k) {
        sequences.push_back(sequence_of(plain, row, k, of.context, of.held_out ? AnswerSpan() : answer));
        lengths.push_back(std::ssize(sequences.back().tokens));
      }
      AnswerSpan const span = placed(answer, sequences.back(), !of.held_out);
      spans.insert(spans.end(), {span.begin, span.end});
    }
    Batch batch;
    batch.set("inputs", rows_of(sequences, &Sequence::tokens, 0, rows));
    batch.set("lengths", per_row > 1 ? Tensor::of(lengths, {rows, per_row}) : Tensor::of(lengths, {rows}));
    batch.set("label", plain.get("label"));
    if (plain.has("answer")) {
      batch.set("passage", rows_of(sequences, &Sequence::passage, 0, rows));
      batch.set("span", Tensor::of(spans, {rows, 2}));
    }
    if (form_.predicts)
      batch.set("targets", rows_of(sequences, &Sequence::targets, -1, rows));
    else
      batch.set("segments", rows_of(sequences, &Sequence::segments, 0, rows));
    return batch;
  }

  /// How many held-out answers are not, or not whole, in the `context` tokens that a model reads.
  Index lost_answers(Index context) const {
    constexpr Index rows = 64;
    Index lost = 0;
    if (!given().has("answer") || signature()["inputs"].longest <= context) return 0;
    for (Index i = 0; i < validation_batches(rows, context); ++i)
      lost += std::ranges::count(validation(i, rows, context)["span"].data<std::int64_t>(), -1) / 2;
    return lost;
  }

  std::optional<std::string> cut_short(Index context) const {
    Index longest = 0;
    auto const cut_of = [&](std::vector<ExampleSize> const& sizes) {
      return std::ranges::count_if(sizes, [&](ExampleSize const& size) {
        longest = std::max(longest, size.tokens + form_.special(size.texts));
        return size.tokens + form_.special(size.texts) > context;
      });
    };
    auto const &training = facts_.training_sizes, &held_out = facts_.held_out_sizes;
    auto const of_training = cut_of(training), of_held_out = cut_of(held_out);
    if (of_training + of_held_out == 0) return std::nullopt;
    auto text = fmt::format(
        "{} of {} training examples and {} of {} held-out ones have more than model.context: {} tokens and are cut (the longest has {})",
        of_training, training.size(), of_held_out, held_out.size(), context, longest);
    if (auto const lost = lost_answers(context); lost > 0)
      text += fmt::format("; {} held-out answers are cut off: they count as wrong, and the loss is the mean of the others", lost);
    return text;
  }

  SequenceForm form_;
};

/// Examples as BERT reads them (Devlin et al. 2019, section 3), with tokens [CLS] and [SEP] and the number of the text that a token is of:
///
///   a text           [CLS] text [SEP]
///   a pair           [CLS] first [SEP] second [SEP], segments 0 … 0 1 … 1
///   an option of K   [CLS] text [SEP] (second) option [SEP]
///
/// With `exact_match`, segment 2 has the tokens of `second` that occur in the first text too: the feature f_exact_match of Chen et al.
/// 2017 (DrQA, section 3.2), added to the embedding as Devlin et al. add segments.
Sequence segmented(ExamplePieces const& pieces, Index mark, bool exact_match) {
  Sequence made;
  made.add(mark, 0, 2);
  made.add(pieces.first, 0);
  made.add(mark + 1);
  if (pieces.second.empty() && pieces.option.empty()) return made;
  made.add_passage(pieces.second);
  std::set<Index> const in_first(pieces.first.begin(), pieces.first.end());
  for (auto i = static_cast<std::size_t>(made.begin); exact_match && i < made.tokens.size(); ++i)
    if (in_first.contains(made.tokens[i])) made.segments[i] = 2;
  made.add(pieces.option, 1);
  made.add(mark + 1, 1);
  return made;
}

/// Examples as GPT-1 reads them (Radford et al. 2018, section 3.3), with tokens [start], [delimiter] and [extract]:
///
///   a text           [start] text [extract]
///   a pair           [start] first [delimiter] second [extract]; without an order: this and the other order
///   an option of K   [start] text ([delimiter] second) [delimiter] option [extract]
///
/// The targets of the language model beside the task are the next tokens, the special ones included, as in the authors' program.
Sequence delimited(ExamplePieces const& pieces, Index mark, bool) {
  Sequence made;
  made.add(mark);
  made.add(pieces.first, 0);
  if (!pieces.second.empty()) {
    made.add(mark + 1);
    made.add_passage(pieces.second);
  }
  if (!pieces.option.empty()) {
    made.add(mark + 1);
    made.add(pieces.option, 1);
  }
  made.add(mark + 2, 0, 2);
  made.ask_next();
  return made;
}

/// Options as continuations of a text, without special tokens, as a language model that was never trained on the task reads them (Radford
/// et al. 2018, section 5): text, second and option one after the other, joined as in pre-training (a blank, or `join`). Targets are the
/// next tokens of the option alone.
Sequence continued(ExamplePieces const& pieces, Index, bool) {
  Sequence made;
  made.add(pieces.first, 0);
  made.add(pieces.second, 0);
  made.add(pieces.option, 1);
  made.ask_next(1);
  return made;
}

/// `prepare`: what the examples must be, or are made, before.
ViewKind sequence_view(
    std::vector<std::string> needs, SequenceForm form, void (*prepare)(Dataset& examples) = [](Dataset&) {}) {
  return {form.name, std::move(needs), [=](std::unique_ptr<Dataset> plain, std::uint64_t, Settings const*) {
            prepare(*plain);
            return std::make_unique<SequenceView>(std::move(plain), form);
          }};
}

Declared<ViewKind> const segmented_view{sequence_view({"first"}, {.name = "segmented",
                                                                  .marks = {"[CLS]", "[SEP]"},
                                                                  .special = [](Index texts) -> Index { return texts > 1 ? 3 : 2; },
                                                                  .put_together = segmented,
                                                                  .predicts = false})};

Declared<ViewKind> const delimited_view{sequence_view({"first"},
                                                      {.name = "delimited",
                                                       .marks = {"[start]", "[delimiter]", "[extract]"},
                                                       .special = [](Index texts) { return texts + 1; },
                                                       .put_together = delimited,
                                                       .both_orders = true},
                                                      [](Dataset& examples) {
                                                        if (examples.signature().has("exact_match"))
                                                          throw Error(
                                                              "data.exact_match: is encoded in segments, which this model does not read; "
                                                              "bert does");
                                                      })};

Declared<ViewKind> const continued_view{sequence_view({"first", "options"},
                                                      {.name = "continued",
                                                       .marks = {},
                                                       .special = [](Index) -> Index { return 0; },
                                                       .put_together = continued,
                                                       .cuts_beginnings = true},  // what an option goes on with stands right before it
                                                      join_texts)};

}  // namespace
}  // namespace heed
