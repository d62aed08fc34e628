#include <algorithm>
#include <span>

#include "autograd/error.hpp"
#include "autograd/random.hpp"
#include "experiments/data/view.hpp"

namespace heed {

namespace {

/// A row's tokens, without padding.
std::span<Index const> text_of(Batch const& batch, Index row) {
  Tensor const& inputs = batch["inputs"];
  Index const places = inputs.size(1);
  Index const length = batch.has("lengths") ? heed::at(batch["lengths"].data<std::int64_t>(), row) : places;
  return inputs.data<std::int64_t>().subspan(static_cast<std::size_t>(row * places), static_cast<std::size_t>(length));
}

/// Pairs for next-sentence prediction (Devlin et al. 2019, section 3.1): [CLS] A [SEP] B [SEP], A and B stretches of text. With probability
/// ½ B is what follows A (next_sentence 1), else a stretch from somewhere else (0). What is drawn depends on the seed and the row's number
/// in training, on the number alone in validation. Where a token is special, or padding, `next` is −1: it is never to be predicted.
class SentencePairs : public View {
 public:
  SentencePairs(std::unique_ptr<Dataset> plain, std::uint64_t seed) : View(std::move(plain)), seed_(seed), words_(vocabulary()) {
    PartSpec inputs = signature()["inputs"];
    inputs.classes += 2;
    inputs.added = {"[CLS]", "[SEP]"};
    inputs.made_by = "sentence_pairs";
    facts_.signature.set({.name = "segments", .classes = 2, .vocabulary = "texts", .made_by = "sentence_pairs"});
    facts_.signature.set({.name = "next_sentence", .classes = 2, .vocabulary = "classes", .made_by = "sentence_pairs"});
    facts_.signature.set(std::move(inputs));
    // The optimum and references of the next token do not apply to a masked one.
    facts_.groups = {};
    facts_.optimum = nullptr;
    facts_.comparable = false;
  }

 private:
  Index room(Index context) const override {
    if (context < 5) throw Error("model.context: a pair of texts and its three special tokens need at least 5 positions");
    return context - 3;
  }
  /// A row of plain data from anywhere in the split.
  Batch elsewhere(Stream const& draws, ShownRows const& of) const {
    Index const places = room(of.context);
    if (of.held_out)
      return plain().validation(static_cast<Index>(draws.below(1, static_cast<std::uint64_t>(plain().validation_batches(1, places)))), 1,
                                places);
    constexpr std::uint64_t many = std::uint64_t{1} << 40;  // a row of training that no run comes to
    return plain().training(static_cast<Index>(many + draws.below(1, many)), 1, places);
  }

  Batch shown(Batch plain, ShownRows const& of) const override {
    Index const rows = plain.rows(), context = of.context;
    Stream const stream = of.held_out ? Stream(0, "data.held_out_pairs") : Stream(seed_, "data.pairs");
    Tensor inputs = Tensor::full({rows, context}, 0, DType::int64), segments = Tensor::full({rows, context}, 0, DType::int64);
    Tensor next = Tensor::full({rows, context}, -1, DType::int64);
    std::vector<Index> lengths, follows;
    for (Index row = 0; row < rows; ++row) {
      Stream const draws = stream.child(static_cast<std::uint64_t>(of.first + row));
      auto const text = text_of(plain, row);
      auto const half = text.size() / 2;
      bool const goes_on = draws.uniform(0) < 0.5;
      Batch const other = goes_on ? Batch() : elsewhere(draws, of);
      auto const second = goes_on ? text.subspan(half) : text_of(other, 0);
      auto at = static_cast<std::size_t>(row * context);
      auto const begin = at;
      auto const put = [&](Index token, Index segment, bool word) {
        inputs.mutable_data<std::int64_t>()[at] = token;
        segments.mutable_data<std::int64_t>()[at] = segment;
        if (word) next.mutable_data<std::int64_t>()[at] = token;
        ++at;
      };
      put(words_, 0, false);
      for (Index const token : text.first(half)) put(token, 0, true);
      put(words_ + 1, 0, false);
      for (Index const token : second.first(std::min(second.size(), text.size() - half))) put(token, 1, true);
      put(words_ + 1, 1, false);
      lengths.push_back(static_cast<Index>(at - begin));
      follows.push_back(goes_on ? 1 : 0);
    }
    return {{"inputs", inputs},
            {"segments", segments},
            {"next", next},
            {"lengths", Tensor::of(lengths, {rows})},
            {"next_sentence", Tensor::of(follows, {rows})}};
  }

  std::uint64_t seed_;
  Index words_;
};

Declared<ViewKind> const sentence_pairs_view{
    {"sentence_pairs", {"inputs", "next"}, [](std::unique_ptr<Dataset> plain, std::uint64_t seed, Settings const*) {
       return std::make_unique<SentencePairs>(std::move(plain), seed);
     }}};

}  // namespace

}  // namespace heed
