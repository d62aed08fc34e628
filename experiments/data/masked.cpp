#include "experiments/data/masked.hpp"

#include <nlohmann/json.hpp>

#include "experiments/data/tokenizer.hpp"

namespace heed {

namespace {

Declared<ViewKind> const masked_view{
    {"masked_tokens", {"inputs", "next"}, [](std::unique_ptr<Dataset> plain, std::uint64_t seed, Settings const* settings) {
       return std::make_unique<MaskedDataset>(std::move(plain), seed, dynamic_cast<MaskingSettings const&>(*settings));
     }}};

}  // namespace

MaskedDataset::MaskedDataset(std::unique_ptr<Dataset> plain, std::uint64_t seed, MaskingSettings masking)
    : View(std::move(plain)), masking_(std::move(masking)), seed_(seed) {
  if (auto const tokenizer = this->plain().tokenizer_handle()) end_ = tokenizer->end();
}

Signature MaskedDataset::signature() const {
  Signature given = View::signature();
  PartSpec inputs = given["inputs"];
  ++inputs.classes;
  inputs.added.push_back("[MASK]");
  PartSpec targets = inputs;
  targets.name = "targets";
  targets.made_by = "masked_tokens";
  given.remove("next");
  given.set(std::move(inputs));
  given.set(std::move(targets));
  return given;
}

Batch MaskedDataset::training(Index index, Index batch, Index context) const {
  return masked(View::training(index, batch, context), Stream(seed_, "data.masks"), index * batch);
}

Batch MaskedDataset::validation(Index index, Index batch, Index context) const {
  return masked(View::validation(index, batch, context), Stream(0, "data.held_out_masks"), index * batch);
}

Batch MaskedDataset::masked(Batch const& plain, Stream const& stream, Index first_row) const {
  Tensor inputs = plain["inputs"].clone(), targets = Tensor::full(inputs.shape(), -1, DType::int64);
  auto const predicted = plain["next"].data<std::int64_t>();  // −1: padding
  auto const shown = inputs.mutable_data<std::int64_t>(), asked = targets.mutable_data<std::int64_t>();
  auto const choose = [&, mask_token = mask()](std::size_t i, double how, std::uint64_t random) {
    asked[i] = shown[i];
    if (how < masking_.mask)
      shown[i] = mask_token;
    else if (how < masking_.mask + masking_.random)
      shown[i] = static_cast<Index>(random);
  };
  auto const length = static_cast<std::size_t>(inputs.size(1));
  PartSpec const given = View::signature()["inputs"];  // of whose tokens the added ones are never drawn
  auto const vocabulary = static_cast<std::uint64_t>(given.classes - std::ssize(given.added));

  for (std::size_t row = 0; row * length < predicted.size(); ++row) {
    Stream const draws = stream.child(static_cast<std::uint64_t>(first_row) + row);
    std::vector<std::size_t> eligible;
    bool any = false;
    for (std::size_t position = 0; position < length; ++position) {
      std::size_t const i = row * length + position;
      if (predicted[i] < 0 || shown[i] == end_) continue;
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
  Batch result = plain;
  for (char const* const gone : {"next", "groups"}) result.set(gone, {});
  result.set("inputs", inputs);
  result.set("targets", targets);
  return result;
}

nlohmann::json MaskedDataset::describe() const {
  auto result = View::describe();
  result["masked"] = {{"chosen", masking_.share}, {"mask", masking_.mask}, {"random", masking_.random}, {"token", mask()}};
  return result;
}

}  // namespace heed
