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
  Index const width = inputs.size(1);
  Index const length = batch.has("lengths") ? heed::at(batch["lengths"].data<std::int64_t>(), row) : width;
  return inputs.data<std::int64_t>().subspan(static_cast<std::size_t>(row * width), static_cast<std::size_t>(length));
}

/// Pairs for next-sentence prediction (Devlin et al. 2019, section 3.1): [CLS] A [SEP] B [SEP], A and B stretches of text. With probability
/// ½ B is what follows A (next_sentence 1), else a stretch from somewhere else (0). What is drawn depends on the seed and the row's number
/// in training, on the number alone in validation. Where a token is special, or padding, `next` is −1: it is never to be predicted.
class SentencePairs : public View {
 public:
  SentencePairs(std::unique_ptr<Dataset> plain, std::uint64_t seed)
      : View(std::move(plain)), seed_(seed), words_(this->plain().signature()["inputs"].classes) {}

  Signature signature() const override {
    Signature given = View::signature();
    PartSpec inputs = given["inputs"];
    inputs.classes += 2;
    inputs.added = {"[CLS]", "[SEP]"};
    inputs.made_by = "sentence_pairs";
    given.set({.name = "segments", .classes = 2, .vocabulary = "texts", .made_by = "sentence_pairs"});
    given.set({.name = "next_sentence", .classes = 2, .vocabulary = "classes", .made_by = "sentence_pairs"});
    given.set(std::move(inputs));
    return given;
  }
  Batch training(Index index, Index batch, Index context) const override {
    auto const elsewhere = [&](Stream const& draws) {
      constexpr std::uint64_t many = std::uint64_t{1} << 40;  // a row of training that no run comes to
      return plain().training(static_cast<Index>(many + draws.below(1, many)), 1, room(context));
    };
    return paired(plain().training(index, batch, room(context)), Stream(seed_, "data.pairs"), index * batch, context, elsewhere);
  }
  Index validation_batches(Index batch, Index context) const override { return plain().validation_batches(batch, room(context)); }
  Batch validation(Index index, Index batch, Index context) const override {
    auto const count = static_cast<std::uint64_t>(plain().validation_batches(1, room(context)));
    auto const elsewhere = [&](Stream const& draws) {
      return plain().validation(static_cast<Index>(draws.below(1, count)), 1, room(context));
    };
    return paired(plain().validation(index, batch, room(context)), Stream(0, "data.held_out_pairs"), index * batch, context, elsewhere);
  }
  // The optimum and references of the next token do not apply to a masked one.
  TargetGroups groups() const override { return {}; }
  std::optional<double> optimum(Index, Index) const override { return std::nullopt; }
  std::vector<std::pair<std::string, double>> reference_losses() const override { return {}; }

 private:
  static Index room(Index context) {
    if (context < 5) throw Error("model.context: a pair of texts and its three special tokens need at least 5 positions");
    return context - 3;
  }

  template <class Elsewhere>
  Batch paired(Batch const& plain, Stream const& stream, Index first_row, Index context, Elsewhere const& elsewhere) const {
    Index const rows = plain.rows();
    Tensor inputs = Tensor::full({rows, context}, 0, DType::int64), segments = Tensor::full({rows, context}, 0, DType::int64);
    Tensor next = Tensor::full({rows, context}, -1, DType::int64);
    std::vector<Index> lengths, follows;
    for (Index row = 0; row < rows; ++row) {
      Stream const draws = stream.child(static_cast<std::uint64_t>(first_row + row));
      auto const text = text_of(plain, row);
      auto const half = text.size() / 2;
      bool const goes_on = draws.uniform(0) < 0.5;
      Batch const other = goes_on ? Batch() : elsewhere(draws);
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
