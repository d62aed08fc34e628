// What heed inspect shows a model of pictures: one of its data, and the caption.

#include <algorithm>

#include <fmt/format.h>

#include "experiments/commands/inspect.hpp"
#include "experiments/report/picture_figure.hpp"
#include "experiments/report/text_figure.hpp"
#include "experiments/train/experiment.hpp"
#include "nn/decode.hpp"

namespace heed {

namespace {

struct InspectedPicture : Inspected {
  using Inspected::Inspected;

  bool by_rows() const override { return true; }

  void show(InspectOptions const& options) override {
    if (!options.text.empty())
      throw ConfigError("--text", fmt::format("{} reads images of its data: select one with --row", run.path.string()));
    if (!options.row) throw ConfigError("--row", "is needed: number of a held-out image, from 1");
    if (!tokenizers.inputs) throw ConfigError(run.path.string(), "the run's data have no words");
    auto const data = data_of(run, options.folders);
    Index const context = run.model->context();
    if (*options.row < 1 || *options.row > data->validation_batches(1, context))
      throw ConfigError("--row",
                        fmt::format("there is no image {}: the data hold out {}", *options.row, data->validation_batches(1, context)));
    batch = data->validation(*options.row - 1, 1, context);
    asked = data->original(*options.row - 1).reference;
    auto const& words = *tokenizers.inputs;
    Batch given;
    for (InputPart const& part : input_parts_of(run.settings.model))
      if (part.picture) given.set(part.name, batch[part.name]);
    std::vector<Index> caption;
    if (options.target) {
      auto const tokens = encoded(*options.target);
      caption.assign(tokens.begin() + 1, tokens.end());
    } else {
      caption = beam(*run.model, given, *words.begin(), *words.end(), context, options.beam).front().front().tokens;
      written = words.decode(caption);
    }
    caption.insert(caption.begin(), *words.begin());
    given.set("inputs", row_of(caption));
    batch = given;
  }

  std::string page(InspectOptions const& options, AttentionMaps const& attention) const override {
    auto const image = image_attention(attention);
    if (image.words.empty()) return Inspected::page(options, attention);
    if (options.head) throw ConfigError("--head", "the maps of a caption are means over the heads");
    if (!options.picture.empty()) write_maps(options.picture, "Attention of each word", {picture_figure(image)});
    return "weights in hundredths, by image region; · is exactly 0\n\n" + picture_table(image);
  }
};

Declared<Inspection> const picture_inspection{inspection_by<InspectedPicture>(
    1, [](TrainedModel const& run) { return std::ranges::any_of(input_parts_of(run.settings.model), &InputPart::picture); })};

}  // namespace

}  // namespace heed
