#include "autograd/random.hpp"
#include "experiments/data/tokenizer.hpp"
#include "experiments/data/view.hpp"
#include "nn/masking.hpp"

namespace heed {
namespace {

/// Masked language modelling (Devlin et al. 2019, section 3.1) over other data: each token is chosen with probability `share` (0.15); a
/// chosen one is replaced by [MASK] with probability `mask` (0.8), by a uniformly random token with probability `random` (0.1), and kept
/// otherwise. The targets are the original chosen tokens, −1 elsewhere. Padding, sentence ends and special tokens ([CLS], [SEP]) are never
/// chosen. A sequence without a chosen token gets one, as in the authors' program, so that in short sequences more than 15 % are chosen.
///
/// The choice depends on the seed and the sequence's number in training, on the number alone in validation; never on the rest of the batch.
/// [MASK] is the token after the last one of the other data.
class MaskedDataset : public View {
 public:
  MaskedDataset(std::unique_ptr<Dataset> data, std::uint64_t seed, MaskingSettings masking)
      : View(std::move(data)), masking_(std::move(masking)), seed_(seed) {
    facts_.description["masked"] = {
        {"chosen", masking_.share}, {"mask", masking_.mask}, {"random", masking_.random}, {"token", plain().vocabulary()}};
    // Properties of next-token prediction do not apply to masked tokens.
    facts_.groups = {};
    facts_.held_out_units = {};
    facts_.optimum = nullptr;
    facts_.comparable = false;
    PartSpec inputs = signature()["inputs"];
    ++inputs.classes;
    inputs.added.push_back("[MASK]");
    PartSpec targets = inputs;
    targets.name = "targets";
    targets.made_by = "masked_tokens";
    facts_.signature.remove("next");
    facts_.signature.set(std::move(inputs));
    facts_.signature.set(std::move(targets));
  }

 private:
  Batch shown(Batch plain, ShownRows const& of) const override {
    Stream const stream = of.held_out ? Stream(0, "data.held_out_masks") : Stream(seed_, "data.masks");
    Tensor inputs = plain["inputs"].clone(), targets = Tensor::full(inputs.shape(), -1, DType::int64);
    auto const predicted = plain["next"].data<std::int64_t>();  // −1: padding
    auto const shown = inputs.mutable_data<std::int64_t>(), asked = targets.mutable_data<std::int64_t>();
    auto const choose = [&, mask_token = this->plain().vocabulary()](std::size_t i, double how, std::uint64_t random) {
      asked[i] = shown[i];
      if (how < masking_.mask)
        shown[i] = mask_token;
      else if (how < masking_.mask + masking_.random)
        shown[i] = static_cast<Index>(random);
    };
    auto const sentence_end = facts_.tokenizer ? facts_.tokenizer->end() : std::nullopt;
    auto const length = static_cast<std::size_t>(inputs.size(1));
    PartSpec const& given = this->plain().signature()["inputs"];  // of whose tokens the added ones are never drawn
    auto const vocabulary = static_cast<std::uint64_t>(given.classes - std::ssize(given.added));

    for (std::size_t row = 0; row * length < predicted.size(); ++row) {
      Stream const draws = stream.child(static_cast<std::uint64_t>(of.first) + row);
      std::vector<std::size_t> eligible;
      bool any = false;
      for (std::size_t position = 0; position < length; ++position) {
        std::size_t const i = row * length + position;
        if (predicted[i] < 0 || shown[i] == sentence_end) continue;
        eligible.push_back(i);
        std::uint64_t const draw = 3 * position;
        if (draws.uniform(draw) >= masking_.share) continue;
        choose(i, draws.uniform(draw + 1), draws.below(draw + 2, vocabulary));
        any = true;
      }
      if (any || eligible.empty()) continue;
      Stream const forced = draws.child("forced");
      choose(eligible[forced.below(0, eligible.size())], forced.uniform(1), forced.below(2, vocabulary));
    }
    for (char const* const gone : {"next", "groups"}) plain.set(gone, {});
    plain.set("inputs", inputs);
    plain.set("targets", targets);
    return plain;
  }

  MaskingSettings masking_;
  std::uint64_t seed_;
};

Declared<ViewKind> const masked_view{
    {"masked_tokens", {"inputs", "next"}, [](std::unique_ptr<Dataset> plain, std::uint64_t seed, Settings const* settings) {
       auto const* const masking = dynamic_cast<MaskingSettings const*>(settings);
       return std::make_unique<MaskedDataset>(std::move(plain), seed, masking ? *masking : MaskingSettings());
     }}};

}  // namespace
}  // namespace heed
