#include "experiments/data/examples/sequences.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "autograd/error.hpp"

namespace heed {

void Sequence::add(Index token, Index segment) {
  tokens.push_back(token);
  segments.push_back(segment);
  passage.push_back(0);
}

void Sequence::add(std::span<Index const> piece, Index segment) {
  for (Index const token : piece) add(token, segment);
}

Tensor rows_of(std::vector<Sequence> const& sequences, std::vector<Index> Sequence::*list, Index filler, Index rows) {
  std::size_t longest = 0;
  for (Sequence const& sequence : sequences) longest = std::max(longest, (sequence.*list).size());
  auto const places = static_cast<Index>(longest), count = std::ssize(sequences);
  Tensor result = Tensor::full({count, places}, static_cast<double>(filler), DType::int64);
  auto const values = result.mutable_data<std::int64_t>();
  for (std::size_t i = 0; i < sequences.size(); ++i)
    std::ranges::copy(sequences[i].*list, values.begin() + static_cast<std::ptrdiff_t>(i * longest));
  return count > rows ? result.viewed({rows, count / rows, places}) : result;
}

SequenceView::SequenceView(std::unique_ptr<Dataset> plain, std::string name, std::vector<std::string> marks)
    : View(std::move(plain)), name_(std::move(name)), marks_(std::move(marks)) {}

Index SequenceView::mark(std::size_t number) const { return given()["first"].classes + static_cast<Index>(number); }

Index SequenceView::sequences_of_row() const {
  if (given().has("options")) return given()["options"].sequences;
  return both_orders() && given().has("symmetric") && given().has("second") ? 2 : 1;
}

void SequenceView::complete(Signature& given) const {
  PartSpec targets = given["inputs"];
  targets.name = "targets";
  given.set(std::move(targets));
}

void SequenceView::declare() {
  Index longest = 1;
  for (auto const* const sizes : {&facts_.training_sizes, &facts_.held_out_sizes})
    for (auto const& [tokens, texts] : *sizes) longest = std::max(longest, tokens + special(texts));
  Signature& given = facts_.signature;
  if (given.has("answer")) {
    given.set({.name = "passage", .classes = 3, .vocabulary = "parts", .longest = longest, .made_by = name_});
    given.set({.name = "span", .classes = longest, .vocabulary = "places", .made_by = name_});
  }
  for (char const* const piece : {"first", "second", "options", "answer", "symmetric", "exact_match"}) given.remove(piece);
  given.set({.name = "inputs",
             .classes = mark(marks_.size()),
             .longest = longest,
             .added = marks_,
             .made_by = name_,
             .sequences = sequences_of_row()});
  complete(given);
  facts_.cut_short = [this](Index context) { return cut_short(context); };
}

namespace {

using Piece = std::span<Index const>;

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

}  // namespace

Sequence SequenceView::sequence_of(Batch const& plain, Index row, Index number, Index context, AnswerSpan const& kept) const {
  Piece first = piece_of(plain, "first", row), second = piece_of(plain, "second", row), option = piece_of(plain, "options", row, number);
  Piece const whole_first = first, whole_second = second;
  Index const texts = 1 + (second.empty() ? 0 : 1) + (option.empty() ? 0 : 1);
  cut_to_room({&second, &option, &first}, context - special(texts));
  if (cuts_beginnings()) first = whole_first.last(first.size()), second = whole_second.last(second.size());
  Index skipped = 0;
  if (kept.end >= std::ssize(second)) {  // a window with the answer in its middle
    Index const before = std::max<Index>(0, (std::ssize(second) - (kept.end + 1 - kept.begin)) / 2);
    skipped = std::clamp<Index>(kept.begin - before, 0, std::ssize(whole_second) - std::ssize(second));
    second = whole_second.subspan(static_cast<std::size_t>(skipped), second.size());
  }
  ExamplePieces pieces{first, second, option};
  if (number == 1 && !plain.has("options")) std::swap(pieces.first, pieces.second);  // the other order
  Sequence made = put_together(pieces);
  made.skipped = skipped;
  return made;
}

Batch SequenceView::shown(Batch plain, ShownRows const& of) const {
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
  complete(batch, sequences);
  return batch;
}

Index SequenceView::lost_answers(Index context) const {
  constexpr Index rows = 64;
  Index lost = 0;
  if (!given().has("answer") || signature()["inputs"].longest <= context) return 0;
  for (Index i = 0; i < validation_batches(rows, context); ++i)
    lost += std::ranges::count(validation(i, rows, context)["span"].data<std::int64_t>(), -1) / 2;
  return lost;
}

std::optional<std::string> SequenceView::cut_short(Index context) const {
  Index longest = 0;
  auto const cut_of = [&](std::vector<ExampleSize> const& sizes) {
    return std::ranges::count_if(sizes, [&](ExampleSize const& size) {
      longest = std::max(longest, size.tokens + special(size.texts));
      return size.tokens + special(size.texts) > context;
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

}  // namespace heed
