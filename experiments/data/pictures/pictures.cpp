#include <algorithm>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "autograd/parallel.hpp"
#include "experiments/data/pair_batches.hpp"
#include "experiments/data/pictures/picture_task.hpp"
#include "experiments/data/tasks/task.hpp"
#include "experiments/data/tokenizers/tokenizers.hpp"

namespace heed {

namespace {

/// A picture and its caption, and the cell that each word tells of.
struct Captioned {
  std::vector<Index> pixels;
  std::string text = {};
  SequencePair caption = {};  // the text as its target; there is no source
  std::vector<Index> cells = {};
};

/// Held-out pictures are drawn from NAME.held_out, or NAME.test.
class PicturesDataset : public DrawnDataset {
 public:
  PicturesDataset(std::unique_ptr<PictureTask> task, DataContext const& context)
      : DrawnDataset(context.seed, context.kind + (context.held_out == "test" ? ".test" : ".held_out"), task->validation),
        name_(context.kind),
        task_(std::move(task)),
        sizes_(task_->sizes()) {
    facts_.files = task_->open(context);
    auto words = task_->words();
    std::ranges::sort(words);
    facts_.tokenizer = facts_.source_tokenizer = word_tokenizer(words);
    Index const places = longest() + 1, vocabulary = facts_.tokenizer->vocabulary();
    facts_.signature = {{.name = "image", .classes = sizes_.levels, .vocabulary = "image", .shape = {sizes_.channels, height(), width()}},
                        {.name = "inputs", .classes = vocabulary, .longest = places},
                        {.name = "targets", .classes = vocabulary, .longest = places}};
    facts_.description = values_of(*task_);
    facts_.description["vocabulary"] = vocabulary;
    for (auto const& [of, read] : facts_.files) facts_.description["files"].push_back({{"file", read.file}, {"sha256", read.sha256}});
    facts_.bounds = {chance(words)};
  }

  /// A word comes from any pixel of its cell: places of the source are pixels, row by row.
  Original original(Index row) const override {
    if (row < 0 || row >= held_out()) return {};
    auto const [pixels, text, caption, cells] = picture(held_out_draws().child(static_cast<std::uint64_t>(row)), true);
    std::vector<Link> links;
    Index const side = sizes_.side;
    for (std::size_t word = 0; word < cells.size(); ++word) {
      Index const top = cells[word] / task_->columns * side, left = cells[word] % task_->columns * side;
      for (Index i = 0; i < side * side; ++i)
        links.push_back({static_cast<Index>(word), (top + i / side) * width() + left + i % side, false});
    }
    return {text, std::move(links)};
  }

 private:
  Index height() const { return task_->rows * sizes_.side; }
  Index width() const { return task_->columns * sizes_.side; }
  Index longest() const { return task_->most * sizes_.words_each; }

  Captioned picture(Stream const& draws, bool held_out) const {
    Captioned result{std::vector<Index>(static_cast<std::size_t>(sizes_.channels * height() * width()))};
    auto const things = task_->least + draw_number(draws.child("things"), 0, task_->most - task_->least + 1);
    auto cells = different_numbers(draws.child("cells"), things, task_->rows * task_->columns);
    std::ranges::sort(cells);
    for (Index const cell : cells) {
      Index const row = cell / task_->columns, column = cell % task_->columns;
      PictureCell const square{result.pixels, height(), width(), row * sizes_.side, column * sizes_.side};
      for (auto const& word : task_->put(square, row, column, draws.child("thing").child(static_cast<std::uint64_t>(cell)), held_out)) {
        result.text += (result.cells.empty() ? "" : " ") + word;
        result.cells.push_back(cell);
      }
    }
    result.caption.target = tokens_of(*facts_.tokenizer, result.text);
    task_->finish(result.pixels, draws.child("finish"));
    return result;
  }

  Batch rows(Stream const& draws, RowRange const& range, Index context, bool held_out) const override {
    if (context <= longest())
      throw Error(fmt::format("model.context: {} is too short for {}, whose captions have up to {} words and <eos>; make it {} or more",
                              context, name_, longest(), longest() + 1));
    std::vector<Captioned> rows(static_cast<std::size_t>(range.count));
    parallel_for(range.count, 20.0 * static_cast<double>(sizes_.channels * height() * width()), [&](Index begin, Index end) {
      for (Index row = begin; row < end; ++row)
        heed::at(rows, row) = picture(draws.child(static_cast<std::uint64_t>(range.first + row)), held_out);
    });
    return joined(rows);
  }

  Batch joined(std::vector<Captioned> const& rows) const {
    Batch result = batch_of(mapped(rows, [](Captioned const& row) { return &row.caption; }));
    result.set("source", {});
    result.set("source_lengths", {});
    Tensor image({std::ssize(rows), sizes_.channels, height(), width()}, DType::int64);
    auto at = image.mutable_data<std::int64_t>().begin();
    for (auto const& row : rows) at = std::ranges::copy(row.pixels, at).out;
    result.set("image", image);
    return result;
  }

  std::string name_;
  std::unique_ptr<PictureTask> task_;
  PictureSizes sizes_;
};

}  // namespace

std::vector<Field> PictureTask::fields() {
  return extended(keys(), {field(&rows, "rows", "rows of the grid").in(1, 64), field(&columns, "columns", "columns of the grid").in(1, 64),
                           field(&least, "least", "smallest number of objects in a picture").in(1, 4096),
                           field(&most, "most", "largest number of objects in a picture").in(1, 4096),
                           field(&validation, "validation", "number of held-out pictures, the same for every seed").in(1, 1e6)});
}

std::optional<std::string> PictureTask::contradiction() {
  if (least > most) return "least: it is more than most";
  if (most > rows * columns) return fmt::format("most: {} objects do not fit into {} cells", most, rows * columns);
  return std::nullopt;
}

std::unique_ptr<Dataset> open_pictures(std::unique_ptr<PictureTask> task, DataContext const& context) {
  return std::make_unique<PicturesDataset>(std::move(task), context);
}

}  // namespace heed
