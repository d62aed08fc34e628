#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "autograd/random.hpp"
#include "experiments/data/open.hpp"

namespace heed {

/// A square cell of a picture, in which one thing is drawn.
struct PictureCell {
  std::span<Index> pixels;  ///< of the whole picture, [channels, height, width]
  Index height, width;
  Index top, left;  ///< the cell's corner

  Index& at(Index channel, Index y, Index x) const { return heed::at(pixels, (channel * height + top + y) * width + left + x); }
};

struct PictureSizes {
  Index channels;
  Index levels;      ///< pixels are 0 … levels − 1
  Index side;        ///< of a cell, in pixels
  Index words_each;  ///< words per thing
};

/// Pictures made of a grid of square cells, some of which hold a thing, and captions that name the things in reading order. A file that
/// adds a task defines how a thing looks and what it is called.
struct PictureTask : Settings {
  Index rows = 4, columns = 4;
  Index least = 2, most = 4;
  Index validation = 1'000;

  /// The task's own keys; they precede the shared ones.
  virtual std::vector<Field> keys() = 0;
  /// Reads what it needs, and returns the files that were read; called once, before everything below.
  virtual ReadFiles open(DataContext const&) { return {}; }
  /// All words.
  virtual std::vector<std::string> words() const = 0;
  virtual PictureSizes sizes() const = 0;
  /// Draws a thing into an empty (all 0) cell, with choices from `draws`, and returns its words.
  virtual std::vector<std::string> put(PictureCell const& cell, Index row, Index column, Stream const& draws, bool held_out) const = 0;
  /// Changes the whole picture after the things are drawn; by default nothing.
  virtual void finish(std::span<Index>, Stream const&) const {}

  std::vector<Field> fields() final;
  std::optional<std::string> contradiction() override;
};

std::unique_ptr<Dataset> open_pictures(std::unique_ptr<PictureTask> task, DataContext const& context);

template <class T>
DataKind picture_kind(std::string const& name, std::string const& help, DataParts parts = DataParts::validation) {
  auto const open = [](T const& task, DataContext const& context) { return open_pictures(std::make_unique<T>(task), context); };
  return data_kind<T>(name, help, open, parts);
}

}  // namespace heed
